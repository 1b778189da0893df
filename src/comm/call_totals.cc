#include "comm/call_totals.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

namespace unisono::comm {
namespace {

double seconds(const std::atomic<std::uint64_t>& ns) {
  return static_cast<double>(ns.load(std::memory_order_relaxed)) * 1e-9;
}

}  // namespace

void CallTotals::add_wait(std::size_t rank, std::uint64_t ns) noexcept {
  // An observer that reads between the two stores finds too small a number, which a counter can
  // correct.
  counts_.since_ns.store(0, std::memory_order_relaxed);
  counts_.waited_ns.store(counts_.waited_ns.load(std::memory_order_relaxed) + ns,
                          std::memory_order_release);
  if (rank < ranks_) {
    add(waited_for_ns_[rank], ns);
  }
}

void CallTotals::add_skew(std::uint64_t waited_ns) noexcept {
  const std::uint64_t waited_us = waited_ns / 1000;
  if (waited_us != 0) {
    add(skew_[std::min<int>(static_cast<int>(std::bit_width(waited_us)),
                            Statistics::kSkewBuckets - 1)],
        1);
  }
}

void CallTotals::add_moving(bool is_long, std::uint64_t ns) noexcept {
  if (is_long) {
    add(counts_.long_ns, ns);
    return;
  }
  const std::uint64_t calls = counts_.short_calls.load(std::memory_order_relaxed);
  add(counts_.short_ns, ns * (calls - counts_.short_timed.load(std::memory_order_relaxed)));
  counts_.short_timed.store(calls, std::memory_order_relaxed);
}

Statistics::Row CallTotals::row(std::string name) const {
  Statistics::Row row{.what = std::move(name),
                      .calls = counts_.calls.load(std::memory_order_relaxed),
                      .bytes = counts_.bytes.load(std::memory_order_relaxed),
                      .moving_s = seconds(counts_.long_ns),
                      .waiting_s = seconds(counts_.waited_ns),
                      .waiting_for_s = std::vector<double>(ranks_)};
  const auto timed = counts_.short_timed.load(std::memory_order_relaxed);
  if (timed != 0) {
    row.moving_s += seconds(counts_.short_ns) *
                    static_cast<double>(counts_.short_calls.load(std::memory_order_relaxed)) /
                    static_cast<double>(timed);
  }
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    row.waiting_for_s[rank] = seconds(waited_for_ns_[rank]);
  }
  for (std::size_t k = 1; k < row.skew.size(); ++k) {
    row.skew[k] = skew_[k].load(std::memory_order_relaxed);
  }
  const std::uint64_t longer = std::accumulate(row.skew.begin(), row.skew.end(), std::uint64_t{0});
  row.skew[0] = row.calls - std::min(row.calls, longer);
  return row;
}

}  // namespace unisono::comm
