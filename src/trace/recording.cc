#include "trace/recording.h"

#include <ctime>

namespace unisono::trace {

std::uint64_t recording::monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void recording::note_clock(ClockPair& pair, bool counter) noexcept {
  std::uint64_t best = ~std::uint64_t{0};
  std::uint64_t at = 0;
  std::uint64_t moment = 0;
  for (int i = 0; i < 3; ++i) {  // several times, because the thread may be interrupted in between
    const std::uint64_t before = monotonic_ns();
    const std::uint64_t count = ticks(counter);
    const std::uint64_t after = monotonic_ns();
    if (after - before < best) {
      best = after - before;
      at = count;
      moment = before + best / 2;
    }
  }
  pair.ticks.store(at, std::memory_order_relaxed);
  pair.ns.store(static_cast<std::int64_t>(counter ? moment : at), std::memory_order_relaxed);
  pair.error_ns.store(counter ? static_cast<std::int64_t>(best / 2 + 1) : 0,
                      std::memory_order_relaxed);
}

}  // namespace unisono::trace
