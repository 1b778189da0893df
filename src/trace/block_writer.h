// Fills the ring of a recording with events, block by block. Only one thread at a time uses a
// writer; other writers fill other blocks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "trace/recording.h"

namespace unisono::trace {

// Shared by the trace writers of a rank.
struct RecordingView {
  recording::RecordingHeader* header = nullptr;  // nullptr: record nothing
  recording::Event* ring = nullptr;
  bool counter = false;  // true: the processor's counter; false: the system clock
};

class BlockWriter {
 public:
  BlockWriter() = default;
  explicit BlockWriter(const RecordingView& view) : view_(view) {}

  bool on() const noexcept { return view_.header != nullptr; }
  std::uint64_t now() const noexcept { return recording::ticks(view_.counter); }

  // Appends an event to the current block. Returns its place in the ring.
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
    event.packed = value.packed;  // last: a reader then sees an event
    // The ring does not fit into the cache next to the core.
    __builtin_prefetch(at_ + kAhead, 1);
    ++at_;
    return next_++;
  }
  // Returns the latest event.
  recording::Event* latest() const noexcept { return at_ - 1; }
  // Puts a label before an event if the label differs from the previous one in this block.
  void put_label(std::uint16_t group, std::uint64_t now) noexcept {
    const int label = recording::label_of(*view_.header, group);
    if (free_ == 0 || !is_kept(next_)) {
      take_block();
    }
    if (label == label_) {
      return;
    }
    if (free_ < 2) {  // a label must be in the same block as its events
      take_block();
      if (label == label_) {
        return;
      }
    }
    label_ = label;
    put({.begin = now,
         .span = 0,
         .peer = group,
         .detail = static_cast<std::uint16_t>(label),
         .packed = recording::Event::pack(recording::EventKind::label, false, 0, 0)});
  }
  recording::Event& event(std::uint64_t place) const noexcept {
    return view_.ring[place % view_.header->events];
  }
  // Returns true if other writers have not yet overwritten the event. A writer that overwrites it
  // within the next few stores spoils one event, which readers check.
  bool is_kept(std::uint64_t place) const noexcept {
    const std::uint64_t taken = view_.header->taken.load(std::memory_order_relaxed);
    return place + view_.header->events >= taken * recording::kBlockEvents;
  }
  static void finish(recording::Event& event, std::uint64_t end) noexcept {
    const std::uint64_t duration = std::min(end - event.begin, recording::kUnended - 1);
    event.span = (event.span & ~recording::kUnended) | duration;
  }

 private:
  // Marks the next event as the end of the block. Its contents belong to an earlier round. It is
  // cleared before the previous event is written, so that a reader does not take it for a new event
  // if the rank is killed in between.
  static void end_block_at(recording::Event* event) noexcept {
    event->packed = 0;
    std::atomic_signal_fence(std::memory_order_release);
  }
  void take_block() noexcept;

  static constexpr std::ptrdiff_t kAhead = 16;

  RecordingView view_;
  // The current block: the next place, its event, and the number of free places.
  std::uint64_t next_ = 0;
  recording::Event* at_ = nullptr;
  std::uint64_t free_ = 0;
  int label_ = recording::kNoLabel;  // latest label in this block
};

}  // namespace unisono::trace
