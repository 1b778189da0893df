// Writes the events of one group into a recording. Only one thread at a time uses a writer. A
// writer without a recording writes nothing; check on() first.
#pragma once

#include <cstdint>

#include "trace/block_writer.h"

namespace unisono::trace {

class TraceWriter {
 public:
  TraceWriter() = default;
  // `group`: its number in the header.
  TraceWriter(const RecordingView& view, int group)
      : blocks_(view), group_(static_cast<std::uint16_t>(group)) {}

  bool on() const noexcept { return blocks_.on(); }
  std::uint64_t now() const noexcept { return blocks_.now(); }

  // Begins an operation. `number`: of the operation in its group. `root`: in the group; -1 without
  // a root. `terms`: the result of pack_terms().
  void begin(int name, std::uint64_t number, std::uint64_t bytes, int root = -1,
             std::uint16_t terms = 0) noexcept {
    blocks_.put_label(group_, last_);
    last_ = now();
    fresh_ = true;
    operation_ = blocks_.put(
        {.begin = last_,
         .span = recording::kUnended | std::uint64_t{terms} << recording::kSpanBits,
         .order = static_cast<std::uint32_t>(number),
         .peer = group_,
         .detail = static_cast<std::uint16_t>(name),
         .packed = recording::Event::pack(recording::EventKind::operation, false,
                                          static_cast<std::uint32_t>(root + 1), bytes)});
    begun_ = blocks_.latest();
  }
  // Ends the operation, at the latest stamp() of this poll, or now.
  void end() noexcept {
    if (!fresh_) {
      stamp();
    }
    if (blocks_.is_kept(operation_)) {
      BlockWriter::finish(*begun_, last_);
    }
  }
  // Begins a poll for work: the latest stamp no longer counts as recent.
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
  // Returns the time at which the latest piece of work of this poll ended; without one, the current
  // time.
  std::uint64_t recent() noexcept { return fresh_ ? last_ : stamp(); }

  // Records one pass, or one source of a pass, from `begin` to the latest stamp().
  void pass(recording::EventKind kind, bool to_all, int peer, std::uint32_t sequence,
            std::uint32_t step, std::uint64_t bytes, std::uint64_t begin,
            std::uint64_t busy) noexcept {
    blocks_.put({.begin = begin,
                 .span = recording::Event::pack_span(last_ - begin, busy),
                 .order = static_cast<std::uint32_t>(operation_),
                 .peer = static_cast<std::uint16_t>(peer),
                 .detail = static_cast<std::uint16_t>(sequence),
                 .packed = recording::Event::pack(kind, to_all, step, bytes)});
  }
  // Begins a user's send or recv. Returns its place, for end_transfer(). `peer`: negative if
  // unknown so far.
  std::uint64_t begin_transfer(bool send, int peer, int tag, std::uint64_t bytes) noexcept {
    blocks_.put_label(group_, last_);
    return blocks_.put(
        {.begin = now(),
         .span = recording::kUnended |
                 (send ? std::uint64_t{recording::kWhole} << recording::kSpanBits : 0),
         .order = static_cast<std::uint32_t>(tag),
         .peer = static_cast<std::uint16_t>(peer),
         .detail = group_,
         .packed = recording::Event::pack(recording::EventKind::transfer, false, 0, bytes)});
  }
  void end_transfer(std::uint64_t place, int peer, std::uint64_t bytes) noexcept {
    if (blocks_.is_kept(place)) {
      recording::Event& event = blocks_.event(place);
      event.peer = static_cast<std::uint16_t>(peer);
      event.packed = recording::Event::pack(recording::EventKind::transfer, false, 0, bytes);
      BlockWriter::finish(event, now());
    }
  }

 private:
  BlockWriter blocks_;
  std::uint16_t group_ = 0;
  bool fresh_ = false;
  bool started_ = false;
  std::uint64_t last_ = 0;
  std::uint64_t operation_ = 0;        // place of its event
  recording::Event* begun_ = nullptr;  // the event of the operation
};

}  // namespace unisono::trace
