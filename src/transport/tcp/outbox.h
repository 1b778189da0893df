// The sending half of a link. A message is given to the kernel at once, directly from its memory;
// the part that the kernel does not take waits in the lane, and is sent later with the messages
// after it.
//
// Frames of one lane keep their order on a stream. Long messages use the streams in turn, short
// ones the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/memory.h"
#include "transport/tcp/frame_writer.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/link_health.h"

namespace unisono::tcp {

class Outbox {
 public:
  // `slots`: long messages of a lane at once.
  Outbox(std::span<LinkStream> streams, std::uint32_t slots, LaneTable* lanes, LinkHealth* health);
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Returns true if the peer is there and has room for one more message.
  bool has_room(const Lane& lane, std::size_t bytes) const noexcept;
  // Each REQUIRES: there is room.
  void send(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept {
    put(lane, static_cast<const std::byte*>(data), bytes, signature, Lane::Storage::ring);
  }
  void share(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept {
    put(lane, static_cast<const std::byte*>(data), bytes, signature, Lane::Storage::shared);
  }
  std::byte* reserve(Lane& lane, std::size_t bytes) noexcept;
  void commit(Lane& lane, std::size_t bytes, std::uint64_t signature) noexcept;
  // Reports what was released to the peer: with the next header on the lane, or now.
  void tell_released(Lane& lane) noexcept;
  void send_leave(std::string_view farewell) noexcept;
  void send_abort(std::string_view reason) noexcept;

  // Writes pending data. Returns true if nothing is pending any more.
  bool flush() noexcept;
  // Drops messages of the lane whose writing has not begun. Keeps the rest of a message whose
  // writing has begun, because other frames follow it.
  void close(Lane& lane) noexcept;

  // Returns true if some of the written data is still in this process.
  bool has_unsent() const noexcept;
  // The kernel took less than it was given.
  bool is_blocked(std::size_t stream) const noexcept { return streams_[stream].blocked; }
  std::uint64_t bytes_written() const noexcept;
  // As Frames::sent.
  std::uint64_t frames() const noexcept;
  std::size_t slots() const noexcept { return slots_.count(); }

 private:
  struct Out {
    LinkStream* stream;
    FrameWriter writer;
    bool blocked = false;
    bool leave_due = false;
    std::uint32_t waiting = 0;  // messages of all lanes
    std::size_t turn = 0;       // of the lanes
  };

  std::size_t stream_for(std::uint32_t number, std::size_t bytes) const noexcept {
    return transport::is_short(bytes) ? 0 : number % streams_.size();
  }
  void put(Lane& lane, const std::byte* data, std::size_t bytes, std::uint64_t signature,
           Lane::Storage storage) noexcept;
  void note_reported(Lane& lane) noexcept;
  OutgoingFrame frame_of(Lane& lane, std::uint32_t number) noexcept;
  OutgoingFrame control_frame(FrameKind kind, std::string_view words) const noexcept;
  void wrote(const OutgoingFrame& frame) noexcept;
  std::size_t write(Out& to, std::span<OutgoingFrame> frames) noexcept;
  bool finish_partial(Out& to) noexcept;
  bool flush_abort() noexcept;
  bool flush_credits() noexcept;
  bool flush_messages(std::size_t index) noexcept;
  bool flush_stream(std::size_t index) noexcept;
  void note_waiting() noexcept;
  std::uint32_t sum_of(const std::byte* data, std::size_t bytes) const noexcept;

  std::vector<Out> streams_;
  std::uint32_t slots_per_lane_;
  LaneTable* lanes_;
  LinkHealth* health_;
  transport::Slots slots_;
  std::size_t credits_due_ = 0;
  std::uint64_t frames_ = 0;  // as frames(), without the credits that are due
  bool abort_due_ = false;
  bool aborting_ = false;
  std::string abort_reason_;
  std::string farewell_;
  bool checksum_ = false;
};

}  // namespace unisono::tcp
