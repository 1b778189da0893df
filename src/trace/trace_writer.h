// Writes the events of one group into a recording. Used by one thread at a time. A writer without a
// recording writes nothing; ask on() first.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trace/recording.h"

namespace unisono::trace {

// What the trace writers of a rank share.
struct RecordingView {
  recording::Header* header = nullptr;  // nullptr: nothing is recorded
  recording::Event* ring = nullptr;
  bool counter = false;  // of the processor; false: the system's clock
};

class TraceWriter {
 public:
  TraceWriter() = default;
  // `group`: its number in the header.
  TraceWriter(const RecordingView& view, int group)
      : view_(view), group_(static_cast<std::uint16_t>(group)) {}

  bool on() const noexcept { return view_.header != nullptr; }
  std::uint64_t now() const noexcept { return recording::ticks(view_.counter); }

  // An operation begins. `number` and `root`: in its group; -1: it has no root. `terms`: what
  // pack_terms() makes.
  void begin(int name, std::uint64_t number, std::uint64_t bytes, int root = -1,
             std::uint16_t terms = 0) noexcept {
    put_label();
    last_ = now();
    fresh_ = true;
    operation_ =
        put({.begin = last_,
             .span = recording::kUnended | std::uint64_t{terms} << recording::kSpanBits,
             .order = static_cast<std::uint32_t>(number),
             .peer = group_,
             .detail = static_cast<std::uint16_t>(name),
             .packed = recording::Event::pack(recording::Kind::operation, false,
                                              static_cast<std::uint32_t>(root + 1), bytes)});
    begun_ = at_ - 1;
  }
  // It has ended, with the latest stamp() of this poll, or now.
  void end() noexcept {
    if (!fresh_) {
      stamp();
    }
    if (is_kept(operation_)) {
      finish(*begun_, last_);
    }
  }
  // A look for work begins: what was stamped last is no longer just now.
  void poll() noexcept {
    fresh_ = started_;
    started_ = false;
  }
  // The first poll follows begin() at once.
  void start() noexcept { started_ = fresh_; }
  std::uint64_t stamp() noexcept {
    fresh_ = true;
    return last_ = now();
  }
  // The moment at which the latest piece of work ended, if this was just now.
  std::uint64_t recent() noexcept { return fresh_ ? last_ : stamp(); }

  // One pass, or one source of it, from `begin` to the latest stamp().
  void pass(recording::Kind kind, bool to_all, int peer, std::uint32_t sequence, std::uint32_t step,
            std::uint64_t bytes, std::uint64_t begin, std::uint64_t busy) noexcept {
    put({.begin = begin,
         .span = recording::Event::pack_span(last_ - begin, busy),
         .order = static_cast<std::uint32_t>(operation_),
         .peer = static_cast<std::uint16_t>(peer),
         .detail = static_cast<std::uint16_t>(sequence),
         .packed = recording::Event::pack(kind, to_all, step, bytes)});
  }
  // A send or recv of the user's begins. Returns its place, for end_transfer(). `peer`: negative
  // where it is not known yet.
  std::uint64_t begin_transfer(bool send, int peer, int tag, std::uint64_t bytes) noexcept {
    put_label();
    return put({.begin = now(),
                .span = recording::kUnended |
                        (send ? std::uint64_t{recording::kWhole} << recording::kSpanBits : 0),
                .order = static_cast<std::uint32_t>(tag),
                .peer = static_cast<std::uint16_t>(peer),
                .detail = group_,
                .packed = recording::Event::pack(recording::Kind::transfer, false, 0, bytes)});
  }
  void end_transfer(std::uint64_t place, int peer) noexcept {
    if (is_kept(place)) {
      event(place).peer = static_cast<std::uint16_t>(peer);
      finish(event(place), now());
    }
  }

 private:
  recording::Event& event(std::uint64_t place) const noexcept {
    return view_.ring[place % view_.header->events];
  }
  // Others may have come around the ring since. A writer that comes around within the next few
  // stores spoils one event, which readers check.
  bool is_kept(std::uint64_t place) const noexcept {
    const std::uint64_t taken = view_.header->taken.load(std::memory_order_relaxed);
    return place + view_.header->events >= taken * recording::kBlockEvents;
  }
  static void finish(recording::Event& event, std::uint64_t end) noexcept {
    const std::uint64_t duration = std::min(end - event.begin, recording::kUnended - 1);
    event.span = (event.span & ~recording::kUnended) | duration;
  }
  // In front of what begins, where it is for something else than what began before in this block.
  void put_label() noexcept {
    const int label = recording::label_of(*view_.header, group_);
    if (free_ == 0 || !is_kept(next_)) {
      take_block();
    }
    if (label == label_) {
      return;
    }
    if (free_ < 2) {  // what it is for stands in the same block
      take_block();
      if (label == label_) {
        return;
      }
    }
    label_ = label;
    put({.begin = last_,
         .span = 0,
         .peer = group_,
         .detail = static_cast<std::uint16_t>(label),
         .packed = recording::Event::pack(recording::Kind::label, false, 0, 0)});
  }
  // Returns its place.
  std::uint64_t put(const recording::Event& value) noexcept {
    if (free_ == 0 || !is_kept(next_)) {
      take_block();
    }
    if (--free_ != 0) {
      end_block_at(at_ + 1);
    }
    recording::Event& event = *at_;
    event.begin = value.begin;
    event.span = value.span;
    event.order = value.order;
    event.peer = value.peer;
    event.detail = value.detail;
    std::atomic_signal_fence(std::memory_order_release);
    event.packed = value.packed;  // last: it says that this is an event
    // The ring is larger than the cache next to the core.
    __builtin_prefetch(at_ + kAhead, 1);
    ++at_;
    return next_++;
  }
  // What stood there is of an earlier round. Before the event in front of it is written: a reader
  // must not take it for new where the rank was killed in between.
  static void end_block_at(recording::Event* event) noexcept {
    event->packed = 0;
    std::atomic_signal_fence(std::memory_order_release);
  }
  void take_block() noexcept;

  static constexpr std::ptrdiff_t kAhead = 16;

  RecordingView view_;
  std::uint16_t group_ = 0;
  bool fresh_ = false;
  bool started_ = false;
  std::uint64_t last_ = 0;
  std::uint64_t operation_ = 0;        // the place of its event
  recording::Event* begun_ = nullptr;  // this event
  // In the block that is being filled: the next place, its event, and how many are left.
  std::uint64_t next_ = 0;
  recording::Event* at_ = nullptr;
  std::uint64_t free_ = 0;
  int label_ = recording::kNoLabel;  // of this block
};

}  // namespace unisono::trace
