// Messages between ranks before there is shared memory: a hello of fixed size, and frames.
//
// A frame consists of one or more packets of a SOCK_SEQPACKET socket. Each packet starts with its
// type and with a flag for "more packets of this frame follow". So an error can interrupt a long
// frame. Descriptors are sent with the first packet. All sockets are non-blocking. The caller's
// `AwaitSocket` waits, and throws when it gives up.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "unisono/error.hpp"

namespace unisono::comm {

inline constexpr std::size_t kNonceBytes = 16;

// The first packet of a connection.
struct Hello {
  char magic[8];
  std::uint32_t endian;
  std::uint16_t protocol;
  std::uint16_t has_token;
  char version[12];
  std::int32_t rank;
  std::int32_t size;
  std::int32_t pid;  // the sender's own view of its pid, which reveals another PID namespace
  std::int32_t patience_ms;  // how long the sender will still wait; 0: no limit
  std::byte nonce[kNonceBytes];
  std::uint32_t reserved;
};
static_assert(sizeof(Hello) == 64);

Hello make_hello(int rank, int size, bool has_token, int patience_ms);
// Checks a hello. Returns an empty text if it is well-formed and of this version, a description of
// the problem if it is not, and nullopt if the bytes are not a hello at all.
std::optional<std::string> hello_problem(const Hello& hello);

enum class FrameType : std::uint32_t {
  error = 1,   // code (1 byte), message
  challenge,   // nonce, proof of the listener
  proof,       // proof of the joining rank
  welcome,     // the table of processes
  links,       // ranks (int32 each), with as many descriptors
  data,        // one rank's part of an all_gather
  descriptor,  // with one descriptor
  note,        // over the mesh: the user's note, perhaps with a descriptor
  farewell     // over the mesh: the last message of a rank that leaves properly
};

struct PacketHeader {
  FrameType type;
  std::uint32_t more;
};
inline constexpr std::size_t kPacketBytes = 64 * 1024;  // half of the smallest common socket buffer
inline constexpr std::size_t kMostDescriptors = 250;    // the kernel accepts 253 per packet

struct Frame {
  FrameType type{};
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> fds;
};

// Returns when poll() reports one of `events`, or throws.
using AwaitSocket = std::function<void(short events)>;

// The result of transferring one packet without blocking. would_block also means that too many
// descriptors are in flight.
enum class Io { done, would_block, closed };
Io send_packet(int socket, FrameType type, bool more, std::span<const std::byte> bytes,
               std::span<const int> fds);
// Appends one packet to `frame`, and sets `more` if further packets follow. An invalid packet
// counts as closed. Throws resource if its descriptors could not be installed.
Io receive_packet(int socket, Frame& frame, bool& more);

// If the other side has closed, the first returns false, and the second returns no frame.
bool send_frame(int socket, FrameType type, std::span<const std::byte> bytes,
                std::span<const int> fds, const AwaitSocket& wait);
std::optional<Frame> receive_frame(int socket, const AwaitSocket& wait);

// Sends the hello, which has no header.
Io send_hello(int socket, const Hello& hello);
Io receive_hello(int socket, Hello& hello);

// `peer` is the rank at fault, as in ErrorContext.
std::vector<std::byte> error_bytes(ErrorCode code, std::string_view message, int peer = -1);
Error error_from(const Frame& frame);

// Waits until `socket` reports one of `events`. Returns false when the deadline passes. Throws
// aborted if the wait is interrupted.
bool wait_for(int socket, short events, const Deadline& deadline);

// The process on the other side, according to the kernel.
struct Credentials {
  pid_t pid = 0;
  uid_t uid = 0;
};
std::optional<Credentials> credentials_of(int socket);

}  // namespace unisono::comm
