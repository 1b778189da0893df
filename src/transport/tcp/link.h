// The connection to one peer: its streams, and the lanes of all groups over them.
//
// Every group that has the peer as a member uses the link, possibly from a thread of its own. A
// caller must hold the link's mutex. Two things may be used without the mutex: the bytes of a
// message that peek() returned, and the room that reserve() returned.
//
// On one stream, the frames of a lane keep their order. Long messages use all streams in turn;
// short messages use the first stream. `number` restores the order of messages across streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "transport/tcp/channel.h"
#include "transport/tcp/inbox.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/link_health.h"
#include "transport/tcp/outbox.h"
#include "transport/transport.h"

namespace unisono::tcp {

class TcpLink {
 public:
  // `channels` are connected and non-blocking. `slots` is the number of long messages that a lane
  // may hold at once.
  TcpLink(int peer, std::vector<Channel> channels, std::uint32_t slots, LinkEvents* events);
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  std::mutex mutex;  // guards all of the link and its lanes

  // Opens a group's lane, until close(). Returns nullptr without memory.
  Lane* open(const transport::LaneKey& key) noexcept;
  // REQUIRES: memory that was shared over the lane still exists, unless the lane has drained or the
  // link is gone.
  void close(Lane* lane) noexcept;
  // Drops frames of earlier epochs from now on.
  void retire_before(std::uint32_t epoch) noexcept { lanes_.retire_before(epoch); }

  // As in Transport. False or nullptr: no room now.
  bool send(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  std::byte* reserve(Lane& lane, std::size_t bytes) noexcept;
  void commit(Lane& lane, std::size_t bytes, std::uint64_t signature) noexcept {
    outbox_.commit(lane, bytes, signature);
  }
  bool share(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  bool peek(Lane& lane, transport::Incoming& message) noexcept {
    return inbox_.peek(lane, message);
  }
  bool peek_unread(Lane& lane, transport::Incoming& message) noexcept {
    return inbox_.peek_unread(lane, message);
  }
  std::size_t fetch(Lane& lane, std::size_t offset, std::byte* to, std::size_t bytes) noexcept {
    return inbox_.fetch(lane, offset, to, bytes);
  }
  void release(Lane& lane) noexcept;

  // Reads the available data on each stream. Returns true if there was any.
  bool receive() noexcept { return inbox_.receive(); }
  // Writes pending data. Returns true if nothing is pending any more.
  bool flush() noexcept { return outbox_.flush(); }
  bool has_unsent() const noexcept { return outbox_.has_unsent(); }
  // Tells the peer that this rank leaves, or why the world ends.
  void send_leave(std::string_view farewell) noexcept { outbox_.send_leave(farewell); }
  void send_abort(std::string_view reason) noexcept { outbox_.send_abort(reason); }

  const LinkHealth& health() const noexcept { return health_; }
  // Marks the link as failed if the peer's system is silent, or if one of several streams has been
  // dead for a second. Call it occasionally.
  void look_for_loss(std::int64_t now_us, int silence_ms) noexcept;
  // Returns true if the peer's system has received everything, no longer needs anything, or has
  // been silent for `silence_ms`.
  bool is_delivered(int silence_ms) const noexcept;

  int descriptor(int stream) const noexcept {
    return streams_[static_cast<std::size_t>(stream)].channel.get();
  }
  bool stream_waits(int stream) const noexcept {
    return outbox_.is_blocked(static_cast<std::size_t>(stream));
  }
  bool stream_ended(int stream) const noexcept {
    return health_.gone() || streams_[static_cast<std::size_t>(stream)].ended;
  }

  // Number of bytes that the kernel delivered, and number of bytes that it took.
  std::uint64_t bytes_read() const noexcept { return inbox_.bytes_read(); }
  std::uint64_t bytes_written() const noexcept { return outbox_.bytes_written(); }
  transport::Frames frames() const noexcept {
    return {.sent = outbox_.frames(), .received = inbox_.frames()};
  }
  std::size_t stale_frames() const noexcept { return lanes_.stale_frames(); }
  std::size_t slots() const noexcept { return inbox_.slots() + outbox_.slots(); }

 private:
  bool has_room(const Lane& lane, std::size_t bytes) noexcept;
  void fail_half_dead() noexcept;

  LinkHealth health_;
  std::vector<LinkStream> streams_;
  std::int64_t half_us_ = 0;  // since when only some of the streams live; 0: all live
  LaneTable lanes_;
  Outbox outbox_;
  Inbox inbox_;
};

}  // namespace unisono::tcp
