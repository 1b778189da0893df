#include "bench/timing.h"

#include <algorithm>
#include <chrono>

#include "base/quantile.h"

namespace unisono::cli {
namespace {

constexpr int kMostBatches = 40;
constexpr int kMostIterations = 20'000;
constexpr double kLongCall = 20'000;  // us

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Returns the maximum over ranks of each number.
std::vector<double> slowest(Communicator& comm, const std::vector<double>& mine) {
  const auto all = gather_numbers(comm, mine);
  std::vector<double> result = mine;
  for (const std::vector<double>& theirs : all) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = std::max(result[i], theirs[i]);
    }
  }
  return result;
}

double time_batch(Communicator& comm, int calls, const std::function<void()>& call) {
  comm.barrier();
  const double start = now_us();
  for (int i = 0; i < calls; ++i) {
    call();
  }
  return (now_us() - start) / calls;
}

}  // namespace

std::vector<std::vector<double>> gather_numbers(Communicator& comm,
                                                const std::vector<double>& values) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<double> all(values.size() * ranks);
  comm.run({.collective = Collective::all_gather,
            .in = values.data(),
            .out = all.data(),
            .count = values.size(),
            .dtype = Dtype::f64});
  std::vector<std::vector<double>> result(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * values.size());
    result[rank].assign(first, first + static_cast<std::ptrdiff_t>(values.size()));
  }
  return result;
}

CallTiming measure(Communicator& comm, const TimingOptions& options,
                   const std::function<void()>& call, const std::function<void()>& refresh) {
  // The time of one call determines how many calls fit; all ranks use the time of the slowest rank.
  const auto fitting = [&](double call_us) {
    const double fit = options.target_s * 1e6 / std::max(call_us, 0.05);
    return static_cast<int>(std::clamp<double>(fit, options.least_iterations, kMostIterations));
  };
  double first_us = slowest(comm, {time_batch(comm, 1, call)}).front();
  // One call may have been disturbed, so two more are timed unless it is long.
  const double long_call = options.brief ? kLongCall / 4 : kLongCall;
  for (int again = 0; again < 2 && first_us < long_call; ++again) {
    first_us = std::min(first_us, slowest(comm, {time_batch(comm, 1, call)}).front());
  }
  if (options.brief && first_us > options.target_s * 1e6) {
    return {.time_us = first_us, .p99_us = first_us, .iterations = 1, .batches = 1};
  }
  int iterations = options.iterations == 0 ? fitting(first_us) : options.iterations;
  if (options.warmup > 0) {
    time_batch(comm, options.warmup, call);
  } else if (iterations > 20) {
    const int probe = std::min(iterations / 10, 200);
    const double warm_us = slowest(comm, {time_batch(comm, probe, call)}).front();
    iterations = options.iterations == 0 ? fitting(warm_us) : iterations;
  }
  const int batches =
      options.fresh ? std::min(iterations, 1000) : std::min(iterations, kMostBatches);
  const int calls = options.fresh ? 1 : iterations / batches;
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    if (options.fresh) {
      refresh();
    }
    times.push_back(time_batch(comm, calls, call));
  }
  const std::vector<double> slow = slowest(comm, times);
  return {.time_us = median(slow),
          .p99_us = quantile(slow, 0.99),
          .iterations = batches * calls,
          .batches = batches};
}

}  // namespace unisono::cli
