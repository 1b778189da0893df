// The receiving half of a link. Payloads are read directly into their destination; data is copied
// only if it arrives together with short messages. A long message may stay in its stream until its
// reader names a destination, or until another lane needs the stream (inbox_fetch.cc).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transport/memory.h"
#include "transport/tcp/frame_writer.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/link_health.h"
#include "transport/transport.h"

namespace unisono::tcp {

// Maximum number of bytes that are read ahead from a stream with short messages.
inline constexpr std::size_t kStagedBytes = std::size_t{16} << 10;

// The frame that is being read from a stream, and the data read ahead.
struct IncomingFrame {
  FrameHeader header = {};
  std::byte* target = nullptr;  // destination of the payload; nullptr: it is dropped
  std::size_t missing = 0;      // bytes of the payload that have not arrived
  Lane* lane = nullptr;
  bool reading = false;
  std::uint32_t sum = 0;  // checksum of the bytes received so far
  // True while the payload of a long message waits in the socket: until its destination is known,
  // or another lane needs the stream. fetch() has not reported the last `withheld` of the fetched
  // bytes yet; they lie at `place`, and stay there until close(), like shared memory.
  bool parked = false;
  const std::byte* place = nullptr;
  std::size_t withheld = 0;
  bool long_ones = false;  // the previous frame was long: do not read beyond the next header
  std::size_t begin = 0;   // of the data read ahead
  std::size_t end = 0;
  std::unique_ptr<std::byte[]> staged = std::make_unique<std::byte[]>(kStagedBytes);
};

class Inbox {
 public:
  // `slots` is the number of long messages that a lane may hold at once.
  Inbox(std::span<LinkStream> streams, std::uint32_t slots, LaneTable* lanes, LinkHealth* health);
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // Reads the available data on each stream. Returns true if there was any. A long message of lane
  // `patient` stays in its stream until it is fetched, unless its payload has already been read in
  // part. A long message of lane `eager` is read at once. The caller checks these two lanes next;
  // readers of other lanes are notified.
  bool receive(const Lane* patient = nullptr, const Lane* eager = nullptr) noexcept;

  // As in Transport.
  bool peek(Lane& lane, transport::Incoming& message) noexcept;
  bool peek_unread(Lane& lane, transport::Incoming& message) noexcept;
  std::size_t fetch(Lane& lane, std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  // Returns true if a separate frame should notify the peer of the released messages.
  bool release(Lane& lane) noexcept;
  void close(Lane& lane) noexcept;

  std::uint64_t bytes_read() const noexcept { return bytes_read_; }
  // As Frames::received.
  std::uint64_t frames() const noexcept { return frames_; }
  std::size_t slots() const noexcept { return slots_.count(); }

 private:
  // A stream of the link, and its incoming frame.
  struct In : IncomingFrame {
    explicit In(LinkStream* from) : stream(from) {}
    LinkStream* stream;
  };

  bool receive(In& from) noexcept;
  void note_unread() noexcept;
  bool is_as_sent(const In& from) noexcept;
  void took(In& from, const std::byte* part, std::size_t bytes) const noexcept;
  bool unpark(In& from) noexcept;
  In* parked_with(const Lane& lane, std::uint32_t number) noexcept;
  void end_stream(In& from, int error) noexcept;
  bool parse(In& from) noexcept;
  bool begin_frame(In& from) noexcept;
  bool begin_message(In& from) noexcept;
  void end_frame(In& from) noexcept;
  bool take_credit(Lane& lane, std::uint32_t released) noexcept;
  Lane* lane_of(const FrameHeader& header) noexcept;

  std::vector<In> streams_;
  std::uint32_t slots_per_lane_;
  LaneTable* lanes_;
  LinkHealth* health_;
  transport::Slots slots_;
  const Lane* eager_ = nullptr;              // the argument of receive()
  const Lane* own_ = nullptr;                // the lane that the caller of receive() checks
  std::array<char, kMostWords> words_ = {};  // the text of a peer that aborts or leaves
  std::array<std::byte, kStagedBytes> dropped_ = {};
  std::uint64_t bytes_read_ = 0;
  std::uint64_t frames_ = 0;
  bool encrypted_ = false;
  bool checksum_ = false;
};

}  // namespace unisono::tcp
