#include "transport/tcp/outbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/crc32c.h"

namespace unisono::tcp {

Outbox::Outbox(std::span<LinkStream> streams, std::uint32_t slots, LaneTable* lanes,
               LinkHealth* health)
    : slots_per_lane_(slots), lanes_(lanes), health_(health) {
  for (LinkStream& stream : streams) {
    checksum_ = checksum_ || stream.channel.checksum();
    streams_.push_back({.stream = &stream, .writer = FrameWriter(&stream)});
  }
}

bool Outbox::has_room(const Lane& lane, std::size_t bytes) const noexcept {
  transport::Window window = lane.unreleased;
  if (lane.reserved != nullptr) {
    window.add(lane.reserved_bytes);
  }
  return window.holds(bytes, slots_per_lane_) && !health_->gone();
}

std::byte* Outbox::reserve(Lane& lane, std::size_t bytes) noexcept {
  lane.reserved = slots_.take();
  lane.reserved_bytes = bytes;
  return lane.reserved;
}

void Outbox::commit(Lane& lane, std::size_t bytes, std::uint64_t signature) noexcept {
  const std::byte* data = std::exchange(lane.reserved, nullptr);
  put(lane, data, bytes, signature, Lane::Storage::slot);
}

void Outbox::put(Lane& lane, const std::byte* data, std::size_t bytes, std::uint64_t signature,
                 Lane::Storage storage) noexcept {
  const std::uint32_t number = lane.sent++;
  frames_ += lane.key.counts() ? 1U : 0U;
  const std::size_t index = stream_for(number, bytes);
  Out& to = streams_[index];
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
  const bool first = to.waiting == 1 && !to.writer.has_partial();
  if (first && !to.stream->broken && !health_->gone()) {
    OutgoingFrame frame = frame_of(lane, number);
    write(to, {&frame, 1});
  }
  if (!message.written && storage == Lane::Storage::ring) {
    // The memory belongs to the caller again, so the message is copied.
    std::byte* copy = lane.out_ring.place(bytes);
    if (bytes != 0) {
      std::memcpy(copy, data, bytes);
    }
    message.data = copy;
    if (to.writer.is_partial(&lane, number)) {
      to.writer.move_payload(copy);
    }
  }
  if (!first && !health_->gone()) {
    to.blocked = !flush_stream(index);
  }
  note_waiting();
}

void Outbox::note_reported(Lane& lane) noexcept {
  if (lane.credit_due) {
    lane.credit_due = false;
    --credits_due_;
  }
  lane.unreported = {};
}

OutgoingFrame Outbox::frame_of(Lane& lane, std::uint32_t number) noexcept {
  const Lane::Out& message = lane.outgoing(number);
  // The header reports the releases, even if the kernel does not take the frame now: the message
  // stays pending, and its header is built again later.
  note_reported(lane);
  OutgoingFrame frame;
  frame.data = message.data;
  frame.bytes = message.bytes;
  frame.lane = &lane;
  frame.number = number;
  encode({.kind = FrameKind::message,
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

std::uint32_t Outbox::sum_of(const std::byte* data, std::size_t bytes) const noexcept {
  return checksum_ ? kernels::crc32c({data, bytes}) : 0;
}

// REQUIRES: `words` remain valid until the frame is written.
OutgoingFrame Outbox::control_frame(FrameKind kind, std::string_view words) const noexcept {
  OutgoingFrame frame;
  frame.data = reinterpret_cast<const std::byte*>(words.data());
  frame.bytes = words.size();
  encode({.kind = kind,
          .epoch = lanes_->epoch(),
          .bytes = static_cast<std::uint32_t>(frame.bytes),
          .sum = sum_of(frame.data, frame.bytes)},
         frame.header.data());
  return frame;
}

// Notes that the kernel has taken the whole frame.
void Outbox::wrote(const OutgoingFrame& frame) noexcept {
  if (frame.lane == nullptr) {
    return;
  }
  Lane& lane = *frame.lane;
  Lane::Out& message = lane.outgoing(frame.number);
  if (message.storage == Lane::Storage::slot) {
    slots_.give_back(message.data);
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

// Writes frames. Returns how many of them the kernel took whole.
std::size_t Outbox::write(Out& to, std::span<OutgoingFrame> frames) noexcept {
  const std::size_t whole = to.writer.write(frames);
  for (const OutgoingFrame& frame : frames.first(whole)) {
    wrote(frame);
  }
  to.blocked = whole < frames.size() || to.stream->channel.has_unsent();
  return whole;
}

// Completes the partial frame if there is one. Returns true if no partial frame is left.
bool Outbox::finish_partial(Out& to) noexcept {
  if (!to.writer.has_partial()) {
    return true;
  }
  if (!to.writer.finish()) {
    return false;
  }
  wrote(to.writer.partial());
  return true;
}

// Sends the abort frame. The frame is no longer due once the kernel has taken a part of it, because
// the rest is then a partial frame. Returns false if the kernel did not take the whole frame.
bool Outbox::flush_abort() noexcept {
  if (!abort_due_) {
    return true;
  }
  OutgoingFrame frame = control_frame(FrameKind::abort, abort_reason_);
  const bool whole = write(streams_[0], {&frame, 1}) == 1;
  abort_due_ = !whole && !streams_[0].writer.has_partial();
  return whole;
}

bool Outbox::flush_credits() noexcept {
  for (std::size_t i = 0; i < lanes_->in_turn().size() && credits_due_ != 0; ++i) {
    Lane& lane = *lanes_->in_turn()[i];
    if (!lane.credit_due) {
      continue;
    }
    OutgoingFrame frame;
    encode({.kind = FrameKind::credit,
            .epoch = lane.key.epoch,
            .group = lane.key.group,
            .released = lane.next},
           frame.header.data());
    const bool whole = write(streams_[0], {&frame, 1}) == 1;
    if (whole || streams_[0].writer.has_partial()) {
      note_reported(lane);
      frames_ += lane.key.counts() ? 1U : 0U;
    }
    if (!whole) {
      return false;
    }
  }
  return true;
}

// Serves the lanes in turn, and sends as many messages of each lane as possible at once. Returns
// false if messages are still waiting.
bool Outbox::flush_messages(std::size_t index) noexcept {
  Out& to = streams_[index];
  while (to.waiting != 0) {
    to.turn = to.turn + 1 < lanes_->in_turn().size() ? to.turn + 1 : 0;
    Lane& lane = *lanes_->in_turn()[to.turn];
    if (lane.waiting[index] == 0) {
      continue;
    }
    std::array<OutgoingFrame, kFramesAtOnce> frames;
    std::size_t count = 0;
    // All messages before `drained` are written, and their places may be reused.
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
    const std::size_t whole = write(to, {frames.data(), count});
    if (whole < count) {
      lane.cursor[index] = frames[whole].number;
      return false;
    }
    lane.cursor[index] = number;
  }
  return true;
}

bool Outbox::flush_stream(std::size_t index) noexcept {
  Out& to = streams_[index];
  Channel& channel = to.stream->channel;
  return !to.stream->broken && channel.push() && finish_partial(to) &&
         (index != 0 || (flush_abort() && flush_credits())) && flush_messages(index) &&
         !channel.has_unsent();
}

bool Outbox::flush() noexcept {
  if (health_->gone()) {
    return true;
  }
  bool all = true;
  const std::uint64_t before = bytes_written();
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Out& to = streams_[i];
    bool done = flush_stream(i);
    if (done && to.leave_due) {  // the last frame
      const std::string_view words = i == 0 ? std::string_view(farewell_) : std::string_view();
      OutgoingFrame frame = control_frame(FrameKind::leave, words);
      to.leave_due = write(to, {&frame, 1}) == 0 && !to.writer.has_partial();
      done = !to.blocked;
    }
    to.blocked = !done;
    all = all && done;
  }
  if (bytes_written() != before) {
    health_->note_arrival();  // others may wait for their memory, or for room
  }
  note_waiting();
  return all;
}

bool Outbox::has_unsent() const noexcept {
  return !health_->gone() && std::any_of(streams_.begin(), streams_.end(), [](const Out& to) {
    return to.stream->channel.has_unsent();
  });
}

std::uint64_t Outbox::bytes_written() const noexcept {
  std::uint64_t bytes = 0;
  for (const Out& to : streams_) {
    bytes += to.writer.taken();
  }
  return bytes;
}

std::uint64_t Outbox::frames() const noexcept {
  const auto& lanes = lanes_->in_turn();
  const auto due = std::count_if(lanes.begin(), lanes.end(), [](const Lane* lane) {
    return lane->credit_due && lane->key.counts();
  });
  return frames_ + static_cast<std::uint64_t>(due);
}

void Outbox::note_waiting() noexcept {
  bool waits = credits_due_ != 0 || abort_due_;
  for (const Out& to : streams_) {
    waits = waits || to.waiting != 0 || to.writer.has_partial() || to.leave_due ||
            to.stream->channel.has_unsent();
  }
  health_->set_waits(waits);
}

void Outbox::tell_released(Lane& lane) noexcept {
  if (!lane.credit_due) {
    lane.credit_due = true;
    ++credits_due_;
  }
  flush();
}

void Outbox::send_leave(std::string_view farewell) noexcept {
  try {
    farewell_ = farewell.substr(0, transport::kMostFarewell);
  } catch (...) {
    farewell_.clear();  // no memory for it: it leaves without one
  }
  for (Out& to : streams_) {
    to.leave_due = true;
  }
  flush();
}

void Outbox::send_abort(std::string_view reason) noexcept {
  if (aborting_) {
    return;
  }
  aborting_ = true;
  abort_due_ = true;
  try {
    abort_reason_ = reason.substr(0, kMostReason);
  } catch (...) {
    abort_reason_.clear();  // no memory for the text: it ends without one
  }
  flush();
}

void Outbox::close(Lane& lane) noexcept {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Out& to = streams_[i];
    to.waiting -= lane.waiting[i];
    frames_ -= lane.key.counts() ? lane.waiting[i] : 0U;
    if (!to.writer.has_partial() || to.writer.partial().lane != &lane) {
      continue;
    }
    frames_ += lane.key.counts() ? 1U : 0U;
    if (health_->gone()) {
      to.writer.drop_partial();
    } else if (!to.writer.keep_payload()) {
      health_->fail(Reason::memory);
    }
  }
  for (std::uint32_t number = lane.drained; number != lane.sent; ++number) {
    const Lane::Out& message = lane.outgoing(number);
    if (!message.written && message.storage == Lane::Storage::slot) {
      slots_.give_back(message.data);
    }
  }
  if (lane.reserved != nullptr) {
    slots_.give_back(lane.reserved);
  }
  note_reported(lane);
  note_waiting();
}

}  // namespace unisono::tcp
