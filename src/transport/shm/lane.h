// The two ends of a lane over a ring of cells (layout.h). A writer has one reader, or several
// (multicast).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/relax.h"
#include "transport/shm/layout.h"
#include "transport/shm/lent_slots.h"

namespace unisono::shm {

// Returns the number of cells for a message of this length.
constexpr std::uint32_t cells_for(std::size_t bytes) noexcept {
  return bytes <= kFirstPayload
             ? 1
             : 1 + static_cast<std::uint32_t>((bytes - kFirstPayload + kNextPayload - 1) /
                                              kNextPayload);
}

// Copies a few bytes, without a call into libc for the usual sizes.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

// The counters with which a lane's readers report the cells that they have released.
class LaneReaders {
 public:
  explicit LaneReaders(std::vector<const Head*> heads) : heads_(std::move(heads)) {}

  // Returns the count of the slowest reader. If all readers have released everything, this is
  // `latest`.
  std::uint32_t released(std::uint32_t latest) const noexcept {
    std::uint32_t slowest = latest;
    for (const Head* head : heads_) {
      const std::uint32_t seen = head->cells.load(std::memory_order_acquire);
      if (static_cast<std::int32_t>(slowest - seen) > 0) {
        slowest = seen;
      }
    }
    return slowest;
  }
  bool have_released(std::uint32_t position) const noexcept {
    for (const Head* head : heads_) {
      if (!is_behind(head->cells.load(std::memory_order_acquire), position)) {
        return false;
      }
    }
    return true;
  }
  // Returns the reader that has released least.
  std::size_t slowest(std::uint32_t latest) const noexcept {
    std::size_t slowest = 0;
    std::uint32_t most = 0;
    for (std::size_t reader = 0; reader < heads_.size(); ++reader) {
      const std::uint32_t unread = latest - heads_[reader]->cells.load(std::memory_order_acquire);
      if (unread > most) {
        slowest = reader;
        most = unread;
      }
    }
    return slowest;
  }

 private:
  std::vector<const Head*> heads_;
};

class LaneWriter {
 public:
  // `heads` point to the readers' release counts. `start` is the first position; only tests change
  // it.
  LaneWriter(LaneCell* cells, std::vector<const Head*> heads, std::uint32_t start = 1)
      : cells_(cells), next_(start), released_(start - 1), readers_(std::move(heads)) {}

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
    LaneCell& first = cells_[next_ % kCells];
    first.signature = signature;
    copy_short(first.payload, from, head);
    first.header.store(make_header(next_, bytes, CellKind::bytes, cells),
                       std::memory_order_release);
    ++next_;
    for (std::size_t done = head; done < bytes; done += kNextPayload, ++next_) {
      LaneCell& cell = cells_[next_ % kCells];
      const std::size_t part = bytes - done < kNextPayload ? bytes - done : kNextPayload;
      std::memcpy(cell.next_payload(), from + done, part);
      cell.header.store(make_header(next_, 0, CellKind::bytes, 0), std::memory_order_release);
    }
    // The reader has this cell in its cache since the last round. Without the prefetch, the next
    // locked instruction would wait until the cell has come back.
    prefetch_to_write(&cells_[(next_ + kPrefetched) % kCells]);
  }

  // REQUIRES: has_room(1).
  void put_reference(const Reference& reference, CellKind kind, std::uint64_t signature) noexcept {
    LaneCell& cell = cells_[next_ % kCells];
    cell.signature = signature;
    std::memcpy(cell.payload, &reference, sizeof(reference));
    cell.header.store(make_header(next_, 0, kind, 1), std::memory_order_release);
    ++next_;
  }

  // Notes that the next message uses this slot. Slots return to the pool in the order in which they
  // were sent. REQUIRES: slots_lent() < kSlotsPerLane.
  void lend(std::uint32_t slot) noexcept { lent_.lend(slot, next_); }
  void reclaim(Pool& pool) noexcept {
    lent_.give_back(pool, [this](std::uint32_t position) { return behind(position); });
  }
  // Returns free slots of this lane to the pool. Other threads of the rank may call it: a group
  // that finds the pool empty takes back the slots that an idle group no longer needs.
  void reclaim_from_outside(Pool& pool) noexcept {
    lent_.give_back(pool,
                    [this](std::uint32_t position) { return readers_.have_released(position); });
  }
  std::uint32_t slots_lent() const noexcept { return lent_.count(); }
  void refresh() noexcept {
    released_ = readers_.released(next_ - 1);
    lent_.follow(released_);
  }
  std::size_t slowest_reader() const noexcept { return readers_.slowest(next_ - 1); }

 private:
  bool fits(std::uint32_t cells) const noexcept {
    return (next_ - 1 - released_) + cells <= kCells;
  }
  // Returns true if all readers have released every cell before `position`.
  bool behind(std::uint32_t position) const noexcept { return is_behind(released_, position); }

  // The distance in cells at which put_bytes() prefetches.
  static constexpr std::uint32_t kPrefetched = 4;

  LaneCell* cells_;
  std::uint32_t next_;      // of the next cell
  std::uint32_t released_;  // the slowest reader's count, as last seen
  LentSlots lent_;
  LaneReaders readers_;
};

class LaneReader {
 public:
  LaneReader(const LaneCell* cells, Head* head, std::uint32_t start = 1)
      : cells_(cells), head_(head), next_(start) {}

  // Returns the first cell of the next message; nullptr if it has not arrived.
  const LaneCell* arrived() const noexcept {
    const LaneCell& cell = cells_[next_ % kCells];
    return header_sequence(cell.header.load(std::memory_order_acquire)) == next_ ? &cell : nullptr;
  }
  // Copies a message that spans several cells. Returns false if not all of its cells have arrived.
  bool gather(std::size_t bytes, std::byte* to) const noexcept {
    std::memcpy(to, cells_[next_ % kCells].payload, kFirstPayload);
    std::uint32_t position = next_ + 1;
    for (std::size_t done = kFirstPayload; done < bytes; done += kNextPayload, ++position) {
      const LaneCell& cell = cells_[position % kCells];
      if (header_sequence(cell.header.load(std::memory_order_acquire)) != position) {
        return false;
      }
      const std::size_t part = bytes - done < kNextPayload ? bytes - done : kNextPayload;
      std::memcpy(to + done, cell.next_payload(), part);
    }
    return true;
  }
  // Releases cells. With `at_once` the release is reported now, because the writer may be waiting
  // for exactly this message. Otherwise it is reported together with a later release, because each
  // report moves a cache line between both ends. Returns true if the release was reported.
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
  const LaneCell* cells_;
  Head* head_;
  std::uint32_t next_;
  std::uint32_t unreported_ = 0;
};

}  // namespace unisono::shm
