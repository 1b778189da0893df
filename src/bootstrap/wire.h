// What travels between ranks before there is shared memory: the hello of fixed size, and frames.
//
// A frame is one or more packets of a SOCK_SEQPACKET socket. Each packet starts with its type and
// whether more of the same frame follow, so that an error can be told in the middle of a long
// frame. Descriptors travel with the first packet. All sockets are non-blocking; waiting is the
// caller's `AwaitSocket`, which throws when it gives up.
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
  std::int32_t pid;          // as the sender sees itself: another PID namespace shows
  std::int32_t patience_ms;  // how long it will still wait; 0: for ever
  std::byte nonce[kNonceBytes];
  std::uint32_t reserved;
};
static_assert(sizeof(Hello) == 64);

Hello make_hello(int rank, int size, bool has_token, int patience_ms);
// Empty: well-formed and of this version; else what is wrong. Not ours at all: nullopt.
std::optional<std::string> hello_problem(const Hello& hello);

enum class FrameType : std::uint32_t {
  error = 1,   // code (1 byte), message
  challenge,   // nonce, proof of the listener
  proof,       // proof of the joining rank
  welcome,     // the table of processes
  links,       // ranks (int32 each), with as many descriptors
  data,        // a part of an all_gather
  descriptor,  // with one descriptor
  note,        // over the mesh: the user's note, perhaps with a descriptor
  farewell     // over the mesh: the last word of a rank that leaves in order
};

struct PacketHeader {
  FrameType type;
  std::uint32_t more;
};
inline constexpr std::size_t kPacketBytes = 64 * 1024;  // half of the least usual socket buffer
inline constexpr std::size_t kMostDescriptors = 250;    // the kernel takes 253 a packet

struct Frame {
  FrameType type{};
  std::vector<std::byte> bytes;
  std::vector<UniqueFd> fds;
};

// Returns when poll() reports one of `events`, or throws.
using AwaitSocket = std::function<void(short events)>;

// One packet without blocking. would_block also stands for "too many descriptors in flight".
enum class Io { done, would_block, closed };
Io send_packet(int socket, FrameType type, bool more, std::span<const std::byte> bytes,
               std::span<const int> fds);
// Fills `frame` with one packet (adds to its bytes); `more` tells whether others follow. A packet
// that is not ours counts as closed. Throws resource if its descriptors could not be installed.
Io receive_packet(int socket, Frame& frame, bool& more);

// False, or no frame: the other side is closed.
bool send_frame(int socket, FrameType type, std::span<const std::byte> bytes,
                std::span<const int> fds, const AwaitSocket& wait);
std::optional<Frame> receive_frame(int socket, const AwaitSocket& wait);

// The hello, which has no header.
Io send_hello(int socket, const Hello& hello);
Io receive_hello(int socket, Hello& hello);

// `peer`: the rank that is at fault, as the context of an Error has it.
std::vector<std::byte> error_bytes(ErrorCode code, std::string_view message, int peer = -1);
Error error_from(const Frame& frame);

// Waits until `socket` reports one of `events` or the deadline passes (false). Throws aborted
// if it is interrupted.
bool wait_for(int socket, short events, const Deadline& deadline);

// The process on the other side, as the kernel knows it.
struct Credentials {
  pid_t pid = 0;
  uid_t uid = 0;
};
std::optional<Credentials> credentials_of(int socket);

}  // namespace unisono::comm
