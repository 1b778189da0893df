// All that goes to and comes from one peer: its streams, and the lanes of all groups over them.
//
// A link is used by every group that has the peer as a member, each perhaps in a thread of its own:
// whoever calls holds its mutex. Only the bytes of a message that peek() shows, and the room that
// reserve() gave, are used without.
//
// Frames of one lane keep their order on a stream. Long messages go to the streams in turn, short
// ones to the first; `number` puts them in order again.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/tcp/channel.h"
#include "transport/tcp/failure.h"
#include "transport/tcp/lane.h"
#include "transport/tcp/link_events.h"
#include "transport/tcp/memory.h"
#include "transport/transport.h"

namespace unisono::tcp {

// How many bytes of a stream are read ahead at most where short messages come.
inline constexpr std::size_t kStagedBytes = std::size_t{16} << 10;
// Frames of groups that this rank has not opened yet wait; more such groups than this are refused.
inline constexpr std::size_t kMostEarlyLanes = 256;
inline constexpr std::size_t kClosedLanes = 1024;  // late frames of so many closed groups are known

class Link {
 public:
  // `streams`: connected, non-blocking. `slots`: long messages of a lane at once.
  Link(int peer, std::vector<Channel> streams, std::uint32_t slots, LinkEvents* events);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();

  std::mutex mutex;  // guards all of the link and its lanes

  // A lane of a group, from when it is opened until it is closed. nullptr: no memory.
  Lane* open(const LaneKey& key) noexcept;
  // REQUIRES: what was shared over it is still there, unless it is drained or the link is gone.
  void close(Lane* lane) noexcept;
  // Frames of earlier epochs are dropped from now on.
  void retire_before(std::uint32_t epoch) noexcept { epoch_ = epoch; }

  // As in the seam. False or nullptr: no room now.
  bool send(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  std::byte* reserve(Lane& lane, std::size_t bytes) noexcept;
  void commit(Lane& lane, std::size_t bytes, std::uint64_t signature) noexcept;
  bool share(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept;
  bool peek(Lane& lane, transport::Incoming& message) noexcept;
  bool peek_unread(Lane& lane, transport::Incoming& message) noexcept;
  std::size_t fetch(Lane& lane, std::size_t offset, std::byte* to, std::size_t bytes) noexcept;
  void release(Lane& lane) noexcept;

  // Reads what has come, on each stream. True: something. A long message of `patient` whose payload
  // has not begun to be read stays in its stream, to be fetched; one of `eager` is read at once.
  // The caller looks at these lanes next; all others are told.
  bool receive(const Lane* patient = nullptr, const Lane* eager = nullptr) noexcept;
  // Writes what waits. True: nothing waits any more.
  bool flush() noexcept;
  bool waits() const noexcept { return waits_; }
  // Whether some of what is written is still in this process.
  bool has_unsent() const noexcept;
  // The peer hears that this rank ends in good order, or why the world ends.
  void send_leave() noexcept;
  void send_abort(std::string_view reason) noexcept;

  int peer() const noexcept { return peer_; }
  const Failure& failure() const noexcept { return failure_; }
  bool has_left() const noexcept { return left_; }
  const std::string* abort_reason() const noexcept { return aborted_ ? &abort_reason_ : nullptr; }
  void fail(Reason reason, int error = 0, const char* detail = "") noexcept;
  // Nothing more comes, and nothing need be sent.
  bool gone() const noexcept { return left_ || failure_.reason != Reason::none; }
  // A stream is dead, and the peer has said no word of leaving. The system has noticed it on one
  // stream and may not on the others.
  bool half_dead() const noexcept;
  void fail_half_dead() noexcept;
  // Bytes that came from the kernel, and that it took.
  std::uint64_t heard() const noexcept { return heard_; }
  std::uint64_t told() const noexcept { return told_; }
  std::size_t stale_frames() const noexcept { return stale_frames_; }
  std::size_t slots() const noexcept { return in_slots_.count() + out_slots_.count(); }
  int streams() const noexcept { return static_cast<int>(streams_.size()); }
  int descriptor(int stream) const noexcept {
    return streams_[static_cast<std::size_t>(stream)].channel.get();
  }
  bool stream_waits(int stream) const noexcept {
    return streams_[static_cast<std::size_t>(stream)].blocked;
  }
  bool stream_ended(int stream) const noexcept {
    return gone() || streams_[static_cast<std::size_t>(stream)].ended;
  }

 private:
  // A frame on its way out.
  struct Frame {
    std::array<std::byte, kHeaderBytes> header;
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    Lane* lane = nullptr;  // of a message, whose number this is
    std::uint32_t number = 0;
  };
  struct Stream {
    Channel channel;
    // Outgoing: the frame that the kernel took a part of.
    Frame partial = {};
    std::size_t partial_done = 0;  // of its header and payload; 0: there is none
    bool blocked = false;          // the kernel took less than it was given
    bool broken = false;           // it takes nothing any more; why shows when it is read,
    int error = 0;                 // or is this
    bool leave_due = false;
    std::uint32_t waiting = 0;           // messages of all lanes
    std::size_t turn = 0;                // of the lanes
    std::vector<std::byte> orphan = {};  // the rest of a message whose lane was closed
    // Incoming: where the payload of the frame that is being read goes, how much is missing.
    Header header = {};
    std::byte* target = nullptr;  // nullptr: it is dropped
    std::size_t missing = 0;
    Lane* lane = nullptr;
    bool reading = false;
    std::uint32_t sum = 0;  // of what of it has come
    // The payload of a long message waits in the socket until somebody says where it shall go, or
    // needs the stream. Of what was fetched, the last `withheld` bytes, at `place`, were not yet
    // told: they stay there until close(), as what is shared does.
    bool parked = false;
    const std::byte* place = nullptr;
    std::size_t withheld = 0;
    bool ended = false;      // nothing more comes
    bool long_ones = false;  // the frame before was long: do not read beyond the next header
    std::size_t begin = 0;   // of what has been read ahead
    std::size_t end = 0;
    std::unique_ptr<std::byte[]> staged = std::make_unique<std::byte[]>(kStagedBytes);
  };

  Stream& stream_for(std::uint32_t number, std::size_t bytes) noexcept;

  // Sending (link_send.cc).
  bool has_room(Lane& lane, std::size_t bytes) noexcept;
  bool has_room_now(const Lane& lane, std::size_t bytes) const noexcept;
  void put(Lane& lane, const std::byte* data, std::size_t bytes, std::uint64_t signature,
           Lane::Storage storage) noexcept;
  Frame frame_of(Lane& lane, std::uint32_t number) noexcept;
  Frame control_frame(Kind kind) noexcept;
  void wrote(Lane& lane, std::uint32_t number) noexcept;
  std::size_t transmit(Stream& to, std::span<Frame> frames) noexcept;
  std::size_t write(Stream& to, std::span<iovec> parts) noexcept;
  bool finish_partial(Stream& to) noexcept;
  bool flush_control() noexcept;
  bool flush_messages(Stream& to) noexcept;
  bool flush_stream(std::size_t index) noexcept;
  void note_waiting() noexcept;
  std::uint32_t sum_of(const std::byte* data, std::size_t bytes) const noexcept;

  // Receiving (link_receive.cc).
  bool receive(Stream& from) noexcept;
  void note_unread() noexcept;
  bool is_as_sent(const Stream& from) noexcept;
  void took(Stream& from, const std::byte* part, std::size_t bytes) noexcept;
  bool unpark(Stream& from) noexcept;
  Stream* parked_with(const Lane& lane, std::uint32_t number) noexcept;
  void end_stream(Stream& from, int error) noexcept;
  bool parse(Stream& from) noexcept;
  bool begin_frame(Stream& from) noexcept;
  bool begin_message(Stream& from) noexcept;
  void end_frame(Stream& from) noexcept;
  bool take_credit(Lane& lane, std::uint32_t released) noexcept;
  Lane* lane_of(const Header& header) noexcept;
  Lane* add_lane(const LaneKey& key) noexcept;
  void tell(Lane& lane) noexcept;

  int peer_;
  std::uint32_t slots_per_lane_;
  std::vector<Stream> streams_;
  std::map<LaneKey, std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> in_turn_;  // the same, for the turns of the streams
  Lane* latest_ = nullptr;
  const Lane* eager_ = nullptr;  // of receive()
  const Lane* own_ = nullptr;    // and the lane that its caller looks at
  std::array<LaneKey, kClosedLanes> closed_ = {};
  std::size_t closed_count_ = 0;
  std::uint32_t epoch_ = 0;
  Slots out_slots_;
  Slots in_slots_;
  std::size_t credits_due_ = 0;
  bool abort_due_ = false;
  bool aborting_ = false;
  std::string abort_sent_;
  bool left_ = false;
  bool aborted_ = false;
  std::string abort_reason_;
  std::array<std::byte, kMostReason> reason_bytes_ = {};
  std::array<std::byte, kStagedBytes> dropped_ = {};
  bool waits_ = false;
  bool encrypted_ = false;
  bool checksum_ = false;
  bool unread_ = false;
  LinkEvents* events_;
  std::uint64_t heard_ = 0;
  std::uint64_t told_ = 0;
  std::size_t stale_frames_ = 0;
  Failure failure_;
};

}  // namespace unisono::tcp
