#include "peers/timing.h"

#include <algorithm>

namespace unisono::bench {
namespace {

constexpr double kWarmUpMs = 4.0;
constexpr std::uint32_t kMaxWarmUpCalls = 400;
constexpr double kBatchUs = 300.0;
constexpr double kMaxBatchCalls = 1000.0;
constexpr double kMinBatches = 5.0;
constexpr double kMaxBatches = 200.0;
constexpr double kMaxFreshCalls = 1000.0;

class Timer {
 public:
  Timer(Control& control, int rank, int size, const std::function<void()>& call)
      : control_(control), rank_(rank), size_(size), call_(call) {}

  // Runs one batch on all ranks, and stores this rank's time as sample `index`.
  void batch(std::uint32_t calls, std::uint32_t index) {
    control_.barrier(true);
    const std::uint64_t begin = ticks();
    for (std::uint32_t i = 0; i < calls; ++i) {
      call_();
    }
    const std::uint64_t end = ticks();
    control_.block().ranks[rank_].samples_ns[index] =
        static_cast<double>(end - begin) * nanoseconds_per_tick_;
  }

  double slowest_us(std::uint32_t index) const {
    double slowest = 0.0;
    for (int rank = 0; rank < size_; ++rank) {
      slowest = std::max(slowest, control_.block().ranks[rank].samples_ns[index]);
    }
    return slowest / 1000.0;
  }

  // Rank 0 chooses the numbers of calls and batches for the next stage from the latest sample.
  template <typename Choose>
  void choose(const Choose& next) {
    control_.barrier();
    if (rank_ == 0) {
      next();
    }
    control_.barrier();
  }

 private:
  Control& control_;
  int rank_;
  int size_;
  const std::function<void()>& call_;
  double nanoseconds_per_tick_ = bench::nanoseconds_per_tick();
};

std::uint32_t clamped(double value, double low, double high) {
  return static_cast<std::uint32_t>(std::clamp(value, low, high));
}

}  // namespace

double quantile(std::vector<double>& values, double q) {
  if (values.empty()) {
    return 0.0;
  }
  const auto place = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

Samples time_calls(Control& control, int rank, int size, const Timing& timing,
                   const std::function<void()>& call, const std::function<void()>& refresh) {
  Timer timer(control, rank, size, call);
  ControlBlock& block = control.block();
  timer.batch(2, 0);
  timer.choose([&] {
    const double one_us = std::max(timer.slowest_us(0) / 2, 0.01);
    block.calls = clamped(kWarmUpMs * 1000 / one_us, 1, kMaxWarmUpCalls);
  });
  const std::uint32_t warm_up = block.calls;
  timer.batch(warm_up, 0);
  timer.choose([&] {
    const double one_us = std::max(timer.slowest_us(0) / warm_up, 0.01);
    const double calls = timing.budget_ms * 1000 / one_us;
    block.calls = timing.fresh ? 1 : clamped(kBatchUs / one_us, 1, kMaxBatchCalls);
    block.batches =
        clamped(calls / block.calls, kMinBatches, timing.fresh ? kMaxFreshCalls : kMaxBatches);
  });
  const std::uint32_t calls = block.calls;
  const std::uint32_t batches = block.batches;
  for (std::uint32_t i = 0; i < batches; ++i) {
    if (timing.fresh) {
      refresh();
    }
    timer.batch(calls, i);
  }
  control.barrier();
  Samples samples{.call_us = {}, .calls_per_batch = calls};
  for (std::uint32_t i = 0; i < batches && rank == 0; ++i) {
    samples.call_us.push_back(timer.slowest_us(i) / calls);
  }
  return samples;
}

}  // namespace unisono::bench
