// The sending half of a link. A message is given to the kernel at once, directly from its memory.
// The part that the kernel does not take waits in the lane, and is sent later together with the
// messages after it.
//
// On one stream, the frames of a lane keep their order. Long messages use all streams in turn;
// short messages use the first stream.
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
  // `slots` is the number of long messages that a lane may hold at once.
  Outbox(std::span<LinkStream> streams, std::uint32_t slots, LaneTable* lanes, LinkHealth* health);
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Returns true if the peer is alive and has room for one more message.
  bool has_room(const Lane& lane, std::size_t bytes) const noexcept;
  // REQUIRES, for each of these: has_room().
  void send(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept {
    put(lane, static_cast<const std::byte*>(data), bytes, signature, Lane::Storage::ring);
  }
  void share(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept {
    put(lane, static_cast<const std::byte*>(data), bytes, signature, Lane::Storage::shared);
  }
  std::byte* reserve(Lane& lane, std::size_t bytes) noexcept;
  void commit(Lane& lane, std::size_t bytes, std::uint64_t signature) noexcept;
  // Reports releases to the peer: with the next header on the lane if one is due, or now.
  void tell_released(Lane& lane) noexcept;
  void send_leave(std::string_view farewell) noexcept;
  void send_abort(std::string_view reason) noexcept;

  // Writes pending data. Returns true if nothing is pending any more.
  bool flush() noexcept;
  // Drops the lane's messages whose writing has not begun. If a message is partly written, keeps
  // its rest, because it must be completed before other frames can follow.
  void close(Lane& lane) noexcept;

  // Returns true if this process still holds data that was written to a channel.
  bool has_unsent() const noexcept;
  // Returns true if the kernel took less than it was given.
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
