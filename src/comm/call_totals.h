// The costs of one kind of call on a rank, since the rank's group was made. One thread at a time
// writes; any thread may read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "bootstrap/host_memory.h"
#include "unisono/statistics.hpp"

namespace unisono::comm {

class CallTotals {
 public:
  // `counts` must outlive this object. Throws std::bad_alloc.
  CallTotals(CallCounts& counts, std::size_t ranks)
      : counts_(counts), ranks_(ranks), waited_for_ns_(std::make_unique<Count[]>(ranks)) {}

  void add_call(std::size_t bytes) noexcept {
    add(counts_.calls, 1);
    add_bytes(bytes);
  }
  void add_bytes(std::size_t bytes) noexcept { add(counts_.bytes, bytes); }
  // Counts a short blocking call. Returns true if the caller should time this call.
  bool add_short_call() noexcept {
    add(counts_.short_calls, 1);
    // The first call is not typical: it touches new pages and builds programs.
    return counts_.short_calls.load(std::memory_order_relaxed) % kTimedEvery == 2;
  }
  void begin_wait(std::int64_t now_ns) noexcept {
    counts_.since_ns.store(now_ns, std::memory_order_relaxed);
  }
  // Ends the wait. `rank`: the group rank that was waited for; any other number: unknown.
  void add_wait(std::size_t rank, std::uint64_t ns) noexcept;
  // Adds a call's total wait to the histogram.
  void add_skew(std::uint64_t waited_ns) noexcept;
  // Adds the time that a timed call spent moving data.
  void add_moving(bool is_long, std::uint64_t ns) noexcept;

  Statistics::Row row(std::string name) const;

 private:
  static constexpr std::uint64_t kTimedEvery = 64;
  using Count = std::atomic<std::uint64_t>;

  // There is one writer, so this needs no locked instruction.
  static void add(Count& count, std::uint64_t more) noexcept {
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  CallCounts& counts_;
  Count skew_[Statistics::kSkewBuckets] = {};  // skew_[0] is the remainder
  std::size_t ranks_;
  std::unique_ptr<Count[]> waited_for_ns_;  // [rank]
};

}  // namespace unisono::comm
