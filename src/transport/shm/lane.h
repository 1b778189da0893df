// The two ends of a lane over a ring of cells (layout.h). A writer has one or many readers
// (multicast).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "transport/shm/layout.h"
#include "transport/shm/pool.h"

namespace unisono::shm {

class LaneWriter {
 public:
  // `heads`: where the readers count what they have released. `start`: the first position, which
  // is another one only in tests.
  LaneWriter(Cell* cells, std::vector<const Head*> heads, std::uint32_t start = 1)
      : cells_(cells), next_(start), released_(start - 1), heads_(std::move(heads)) {}

  std::uint32_t position() const noexcept { return next_; }
  bool drained(std::uint32_t position) noexcept {
    return behind(position) || (refresh(), behind(position));
  }
  bool has_room(std::uint32_t cells) noexcept { return fits(cells) || (refresh(), fits(cells)); }

  // REQUIRES: has_room(cells_for(bytes)).
  void put_bytes(const void* data, std::size_t bytes, std::uint64_t signature) noexcept {
    const auto* from = static_cast<const std::byte*>(data);
    const std::uint32_t cells = cells_for(bytes);
    const std::size_t head = bytes < kFirstPayload ? bytes : kFirstPayload;
    Cell& first = cells_[next_ % kCells];
    first.signature = signature;
    copy_short(first.payload, from, head);
    first.header.store(make_header(next_, bytes, Kind::bytes, cells), std::memory_order_release);
    ++next_;
    for (std::size_t done = head; done < bytes; done += kNextPayload, ++next_) {
      Cell& cell = cells_[next_ % kCells];
      const std::size_t part = bytes - done < kNextPayload ? bytes - done : kNextPayload;
      std::memcpy(cell.next_payload(), from + done, part);
      cell.header.store(make_header(next_, 0, Kind::bytes, 0), std::memory_order_release);
    }
  }

  // REQUIRES: has_room(1).
  void put_reference(const Reference& reference, Kind kind, std::uint64_t signature) noexcept {
    Cell& cell = cells_[next_ % kCells];
    cell.signature = signature;
    std::memcpy(cell.payload, &reference, sizeof(reference));
    cell.header.store(make_header(next_, 0, kind, 1), std::memory_order_release);
    ++next_;
  }

  // Slots come back to the pool in the order in which they were sent. REQUIRES: slots_lent() <
  // kSlotsPerLane.
  void lend(std::uint32_t slot) noexcept {
    const std::uint32_t end = lent_end_.load(std::memory_order_relaxed);
    lent_[end % kSlotsPerLane].slot.store(slot, std::memory_order_relaxed);
    lent_[end % kSlotsPerLane].position.store(next_, std::memory_order_relaxed);
    lent_end_.store(end + 1, std::memory_order_release);
  }
  void reclaim(Pool& pool) noexcept {
    give_back(pool, [this](std::uint32_t position) { return behind(position); });
  }
  // For the other threads of the rank: a group that finds the pool empty takes back what an idle
  // one no longer needs.
  void reclaim_from_outside(Pool& pool) noexcept {
    give_back(pool, [this](std::uint32_t position) { return read_by_all(position); });
  }
  std::uint32_t slots_lent() const noexcept {
    return lent_end_.load(std::memory_order_relaxed) - lent_begin_.load(std::memory_order_relaxed);
  }
  void refresh() noexcept {
    std::uint32_t slowest = next_ - 1;
    for (const Head* head : heads_) {
      const std::uint32_t seen = head->cells.load(std::memory_order_acquire);
      if (static_cast<std::int32_t>(slowest - seen) > 0) {
        slowest = seen;
      }
    }
    released_ = slowest;
    update_lent();
  }

  // Which of the readers has released least.
  std::size_t slowest_reader() const noexcept {
    std::size_t slowest = 0;
    std::uint32_t most = 0;
    for (std::size_t reader = 0; reader < heads_.size(); ++reader) {
      const std::uint32_t unread =
          next_ - 1 - heads_[reader]->cells.load(std::memory_order_acquire);
      if (unread > most) {
        slowest = reader;
        most = unread;
      }
    }
    return slowest;
  }

  static constexpr std::uint32_t cells_for(std::size_t bytes) noexcept {
    return bytes <= kFirstPayload
               ? 1
               : 1 + static_cast<std::uint32_t>((bytes - kFirstPayload + kNextPayload - 1) /
                                                kNextPayload);
  }
  // A copy of a few bytes without a call into libc for the usual sizes.
  static void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes == 8) {
      std::memcpy(to, from, 8);
    } else if (bytes == 4) {
      std::memcpy(to, from, 4);
    } else if (bytes != 0) {
      std::memcpy(to, from, bytes);
    }
  }

 private:
  bool fits(std::uint32_t cells) const noexcept {
    return (next_ - 1 - released_) + cells <= kCells;
  }
  // All readers have released every cell before `position`.
  bool behind(std::uint32_t position) const noexcept {
    return static_cast<std::int32_t>(released_ - (position - 1)) >= 0;
  }

  // The position of a slot that all have read follows, or it would come to lie ahead of them when
  // 2^31 more cells have passed.
  void update_lent() noexcept {
    const std::uint32_t end = lent_end_.load(std::memory_order_relaxed);
    for (std::uint32_t i = lent_begin_.load(std::memory_order_relaxed); i != end; ++i) {
      std::atomic<std::uint32_t>& position = lent_[i % kSlotsPerLane].position;
      if (behind(position.load(std::memory_order_relaxed))) {
        position.store(released_ + 1, std::memory_order_relaxed);
      }
    }
  }
  bool read_by_all(std::uint32_t position) const noexcept {
    for (const Head* head : heads_) {
      const std::uint32_t seen = head->cells.load(std::memory_order_acquire);
      if (static_cast<std::int32_t>(seen - (position - 1)) < 0) {
        return false;
      }
    }
    return true;
  }
  template <typename IsFree>
  void give_back(Pool& pool, IsFree is_free) noexcept {
    std::uint32_t begin = lent_begin_.load(std::memory_order_acquire);
    while (begin != lent_end_.load(std::memory_order_acquire)) {
      const std::uint32_t slot = lent_[begin % kSlotsPerLane].slot.load(std::memory_order_relaxed);
      if (!is_free(lent_[begin % kSlotsPerLane].position.load(std::memory_order_relaxed))) {
        return;
      }
      if (lent_begin_.compare_exchange_weak(begin, begin + 1, std::memory_order_acq_rel)) {
        pool.give(slot);
        ++begin;
      }
    }
  }

  struct Lent {
    std::atomic<std::uint32_t> slot;
    std::atomic<std::uint32_t> position;  // free when this position is drained
  };
  Cell* cells_;
  std::uint32_t next_;      // position of the next cell
  std::uint32_t released_;  // the slowest reader's count, as last seen
  std::atomic<std::uint32_t> lent_begin_ = 0;
  std::atomic<std::uint32_t> lent_end_ = 0;
  std::array<Lent, kSlotsPerLane> lent_ = {};
  std::vector<const Head*> heads_;
};

class LaneReader {
 public:
  LaneReader(const Cell* cells, Head* head, std::uint32_t start = 1)
      : cells_(cells), head_(head), next_(start) {}

  // The first cell of the next message if it has come, else nullptr.
  const Cell* arrived() const noexcept {
    const Cell& cell = cells_[next_ % kCells];
    return header_sequence(cell.header.load(std::memory_order_acquire)) == next_ ? &cell : nullptr;
  }
  // Gathers a message of several cells. False: not all have come.
  bool gather(std::size_t bytes, std::byte* to) const noexcept {
    std::memcpy(to, cells_[next_ % kCells].payload, kFirstPayload);
    std::uint32_t position = next_ + 1;
    for (std::size_t done = kFirstPayload; done < bytes; done += kNextPayload, ++position) {
      const Cell& cell = cells_[position % kCells];
      if (header_sequence(cell.header.load(std::memory_order_acquire)) != position) {
        return false;
      }
      const std::size_t part = bytes - done < kNextPayload ? bytes - done : kNextPayload;
      std::memcpy(to + done, cell.next_payload(), part);
    }
    return true;
  }
  // `at_once`: the writer may wait for just this message. Otherwise it is told with one of the
  // next: each time costs both ends a cache line. True: the writer was told.
  bool release(std::uint32_t cells, bool at_once) noexcept {
    next_ += cells;
    unreported_ += cells;
    if (!at_once && unreported_ <= kUnreportedCells) {
      return false;
    }
    unreported_ = 0;
    head_->cells.store(next_ - 1, std::memory_order_release);
    return true;
  }

 private:
  const Cell* cells_;
  Head* head_;
  std::uint32_t next_;
  std::uint32_t unreported_ = 0;
};

}  // namespace unisono::shm
