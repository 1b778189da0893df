// The sending half of a link. A message is given to the kernel at once, from where it is; what the
// kernel does not take waits in the lane, and later goes out together with what came behind it.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/crc32c.h"
#include "transport/tcp/link.h"

namespace unisono::tcp {
namespace {

constexpr std::size_t kFramesAtOnce = 16;
// A header and so short a payload are put together: one plain call is faster than two parts.
constexpr std::size_t kCopiedBytes = 4096;

}  // namespace

Link::Stream& Link::stream_for(std::uint32_t number, std::size_t bytes) noexcept {
  return streams_[is_short(bytes) ? 0 : number % streams_.size()];
}

bool Link::has_room_now(const Lane& lane, std::size_t bytes) const noexcept {
  Window window = lane.unreleased;
  if (lane.reserved != nullptr) {
    window.add(lane.reserved_bytes);
  }
  return window.holds(bytes, slots_per_lane_) && !gone();
}

bool Link::has_room(Lane& lane, std::size_t bytes) noexcept {
  if (has_room_now(lane, bytes)) {
    return true;
  }
  receive();  // the peer may have told of room
  return has_room_now(lane, bytes);
}

// Longer messages have no place in the ring.
bool Link::send(Lane& lane, const void* data, std::size_t bytes, std::uint64_t signature) noexcept {
  if (!is_short(bytes) || !has_room(lane, bytes)) {
    return false;
  }
  put(lane, static_cast<const std::byte*>(data), bytes, signature, Lane::Storage::ring);
  return true;
}

std::byte* Link::reserve(Lane& lane, std::size_t bytes) noexcept {
  if (lane.reserved == nullptr && has_room(lane, bytes)) {
    lane.reserved = out_slots_.take();
    lane.reserved_bytes = bytes;
  }
  return lane.reserved;
}

void Link::commit(Lane& lane, std::size_t bytes, std::uint64_t signature) noexcept {
  const std::byte* data = std::exchange(lane.reserved, nullptr);
  put(lane, data, bytes, signature, Lane::Storage::slot);
}

bool Link::share(Lane& lane, const void* data, std::size_t bytes,
                 std::uint64_t signature) noexcept {
  if (!has_room(lane, bytes)) {
    return false;
  }
  put(lane, static_cast<const std::byte*>(data), bytes, signature, Lane::Storage::shared);
  return true;
}

// REQUIRES: the window holds it.
void Link::put(Lane& lane, const std::byte* data, std::size_t bytes, std::uint64_t signature,
               Lane::Storage storage) noexcept {
  const std::uint32_t number = lane.sent++;
  Stream& to = stream_for(number, bytes);
  const auto index = static_cast<std::size_t>(&to - streams_.data());
  Lane::Out& message = lane.outgoing(number);
  message = {.data = data,
             .signature = signature,
             .bytes = static_cast<std::uint32_t>(bytes),
             .sum = sum_of(data, bytes),
             .storage = storage,
             .stream = static_cast<std::uint8_t>(index)};
  lane.unreleased.add(bytes);
  if (lane.waiting[index] == 0) {
    lane.cursor[index] = number;
  }
  ++lane.waiting[index];
  ++to.waiting;
  const bool first = to.waiting == 1 && to.partial_done == 0;
  if (first && !to.broken && !gone()) {
    Frame frame = frame_of(lane, number);
    transmit(to, {&frame, 1});
  }
  if (!message.written && storage == Lane::Storage::ring) {
    // The caller's memory is the caller's again.
    std::byte* copy = lane.out_ring.place(bytes);
    if (bytes != 0) {
      std::memcpy(copy, data, bytes);
    }
    message.data = copy;
    if (to.partial_done != 0 && to.partial.lane == &lane && to.partial.number == number) {
      to.partial.data = copy;
    }
  }
  if (!first && !gone()) {
    to.blocked = !flush_stream(index);
  }
  note_waiting();
}

Link::Frame Link::frame_of(Lane& lane, std::uint32_t number) noexcept {
  const Lane::Out& message = lane.outgoing(number);
  // This header says it. It is told also if the kernel does not take the frame now: the message
  // stays, and its header is made again.
  if (lane.credit_due) {
    lane.credit_due = false;
    --credits_due_;
  }
  lane.unreported = {};
  Frame frame;
  frame.data = message.data;
  frame.bytes = message.bytes;
  frame.lane = &lane;
  frame.number = number;
  encode({.kind = Kind::message,
          .epoch = lane.key.epoch,
          .group = lane.key.group,
          .signature = message.signature,
          .bytes = message.bytes,
          .number = number,
          .released = lane.next,
          .sum = message.sum},
         frame.header.data());
  return frame;
}

std::uint32_t Link::sum_of(const std::byte* data, std::size_t bytes) const noexcept {
  return checksum_ ? kernels::crc32c({data, bytes}) : 0;
}

Link::Frame Link::control_frame(Kind kind) noexcept {
  Frame frame;
  if (kind == Kind::abort) {
    frame.data = reinterpret_cast<const std::byte*>(abort_sent_.data());
    frame.bytes = abort_sent_.size();
  }
  encode({.kind = kind,
          .epoch = epoch_,
          .bytes = static_cast<std::uint32_t>(frame.bytes),
          .sum = sum_of(frame.data, frame.bytes)},
         frame.header.data());
  return frame;
}

// The kernel has all of a message.
void Link::wrote(Lane& lane, std::uint32_t number) noexcept {
  Lane::Out& message = lane.outgoing(number);
  if (message.storage == Lane::Storage::slot) {
    out_slots_.give_back(message.data);
  } else if (message.storage == Lane::Storage::ring && lane.out_memory.holds(message.data)) {
    lane.out_ring.release(message.data, message.bytes);
  }
  message.written = true;
  --lane.waiting[message.stream];
  --streams_[message.stream].waiting;
  while (lane.drained != lane.sent && lane.outgoing(lane.drained).written) {
    ++lane.drained;
  }
}

// How many bytes the kernel took. A broken connection is no failure yet: what the peer said before
// it went, that it leaves or why the world ends, is still to be read.
std::size_t Link::write(Stream& to, std::span<iovec> parts) noexcept {
  const ssize_t got = to.channel.send(parts);
  if (got < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
      to.broken = true;
      to.error = errno;  // the system tells it once
    }
    return 0;
  }
  told_ += static_cast<std::size_t>(got);
  return static_cast<std::size_t>(got);
}

// Gives frames to the kernel; returns how many it took whole. The one that it took a part of
// becomes the stream's partial one. REQUIRES: there is none yet.
std::size_t Link::transmit(Stream& to, std::span<Frame> frames) noexcept {
  std::size_t left = 0;
  if (frames.size() == 1 && frames[0].bytes <= kCopiedBytes) {
    std::byte together[kHeaderBytes + kCopiedBytes];
    std::memcpy(together, frames[0].header.data(), kHeaderBytes);
    if (frames[0].bytes != 0) {
      std::memcpy(together + kHeaderBytes, frames[0].data, frames[0].bytes);
    }
    iovec part{together, kHeaderBytes + frames[0].bytes};
    left = write(to, {&part, 1});
  } else {
    iovec parts[2 * kFramesAtOnce];
    std::size_t count = 0;
    for (Frame& frame : frames) {
      parts[count++] = {frame.header.data(), kHeaderBytes};
      if (frame.bytes != 0) {
        parts[count++] = {const_cast<std::byte*>(frame.data), frame.bytes};  // NOLINT: only read
      }
    }
    left = write(to, {parts, count});
  }
  std::size_t whole = 0;
  for (; whole < frames.size() && left >= kHeaderBytes + frames[whole].bytes; ++whole) {
    left -= kHeaderBytes + frames[whole].bytes;
    if (frames[whole].lane != nullptr) {
      wrote(*frames[whole].lane, frames[whole].number);
    }
  }
  to.blocked = whole < frames.size() || to.channel.has_unsent();
  if (left != 0) {
    to.partial = frames[whole];
    to.partial_done = left;
  }
  return whole;
}

// True: there is none (any more).
bool Link::finish_partial(Stream& to) noexcept {
  if (to.partial_done == 0) {
    return true;
  }
  Frame& frame = to.partial;
  iovec parts[2];
  std::size_t count = 0;
  if (to.partial_done < kHeaderBytes) {
    parts[count++] = {frame.header.data() + to.partial_done, kHeaderBytes - to.partial_done};
  }
  const std::size_t done = to.partial_done < kHeaderBytes ? 0 : to.partial_done - kHeaderBytes;
  if (done < frame.bytes) {
    parts[count++] = {const_cast<std::byte*>(frame.data) + done, frame.bytes - done};  // NOLINT
  }
  to.partial_done += write(to, {parts, count});
  if (to.partial_done < kHeaderBytes + frame.bytes) {
    return false;
  }
  to.partial_done = 0;
  if (frame.lane != nullptr) {
    wrote(*frame.lane, frame.number);
  }
  return true;
}

// Frames without a message. False: some must wait.
bool Link::flush_control() noexcept {
  Stream& to = streams_[0];
  const auto put_out = [&](Frame frame) { return transmit(to, {&frame, 1}) == 1; };
  // The kernel takes even the least part of a frame: then it is on its way.
  const auto due = [&](bool& flag, Kind kind) {
    if (!flag) {
      return true;
    }
    const bool whole = put_out(control_frame(kind));
    flag = !whole && to.partial_done == 0;
    return whole;
  };
  if (!due(abort_due_, Kind::abort)) {
    return false;
  }
  for (std::size_t i = 0; i < in_turn_.size() && credits_due_ != 0; ++i) {
    Lane& lane = *in_turn_[i];
    if (!lane.credit_due) {
      continue;
    }
    Frame frame;
    encode({.kind = Kind::credit,
            .epoch = lane.key.epoch,
            .group = lane.key.group,
            .released = lane.next},
           frame.header.data());
    const bool whole = put_out(frame);
    if (!whole && to.partial_done == 0) {
      return false;
    }
    lane.credit_due = false;
    --credits_due_;
    lane.unreported = {};
    if (!whole) {
      return false;
    }
  }
  return true;
}

// The lanes in turn, of each as many messages as go at once. False: some must wait.
bool Link::flush_messages(Stream& to) noexcept {
  const auto index = static_cast<std::size_t>(&to - streams_.data());
  while (to.waiting != 0) {
    to.turn = to.turn + 1 < in_turn_.size() ? to.turn + 1 : 0;
    Lane& lane = *in_turn_[to.turn];
    if (lane.waiting[index] == 0) {
      continue;
    }
    std::array<Frame, kFramesAtOnce> frames;
    std::size_t count = 0;
    // What lies before `drained` is written, and its place may be used anew.
    if (static_cast<std::int32_t>(lane.cursor[index] - lane.drained) < 0) {
      lane.cursor[index] = lane.drained;
    }
    std::uint32_t number = lane.cursor[index];
    while (count < std::min<std::size_t>(kFramesAtOnce, lane.waiting[index])) {
      const Lane::Out& message = lane.outgoing(number);
      if (message.stream == index && !message.written) {
        frames[count++] = frame_of(lane, number);
      }
      ++number;
    }
    const std::size_t whole = transmit(to, {frames.data(), count});
    if (whole < count) {
      lane.cursor[index] = frames[whole].number;
      return false;
    }
    lane.cursor[index] = number;
  }
  return true;
}

bool Link::flush_stream(std::size_t index) noexcept {
  Stream& to = streams_[index];
  return !to.broken && to.channel.push() && finish_partial(to) && (index != 0 || flush_control()) &&
         flush_messages(to) && !to.channel.has_unsent();
}

bool Link::flush() noexcept {
  if (gone()) {
    return true;
  }
  bool all = true;
  const std::uint64_t told = told_;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& to = streams_[i];
    bool done = flush_stream(i);
    if (done && to.leave_due) {  // the last word
      Frame frame = control_frame(Kind::leave);
      to.leave_due = transmit(to, {&frame, 1}) == 0 && to.partial_done == 0;
      done = !to.blocked;
    }
    to.blocked = !done;
    all = all && done;
  }
  if (told_ != told) {
    events_->arrived();  // others may wait for their memory, or for room
  }
  note_waiting();
  return all;
}

bool Link::has_unsent() const noexcept {
  return !gone() && std::any_of(streams_.begin(), streams_.end(),
                                [](const Stream& to) { return to.channel.has_unsent(); });
}

void Link::note_waiting() noexcept {
  bool waits = credits_due_ != 0 || abort_due_;
  for (const Stream& to : streams_) {
    waits =
        waits || to.waiting != 0 || to.partial_done != 0 || to.leave_due || to.channel.has_unsent();
  }
  waits = waits && !gone();
  if (waits != waits_) {
    waits_ = waits;
    events_->backlogs.fetch_add(waits ? 1 : -1, std::memory_order_relaxed);
  }
}

void Link::send_leave() noexcept {
  for (Stream& to : streams_) {
    to.leave_due = true;
  }
  flush();
}

void Link::send_abort(std::string_view reason) noexcept {
  if (aborting_) {
    return;
  }
  aborting_ = true;
  abort_due_ = true;
  try {
    abort_sent_ = reason.substr(0, kMostReason);
  } catch (...) {
    abort_sent_.clear();  // no memory for the text: it ends without one
  }
  flush();
}

}  // namespace unisono::tcp
