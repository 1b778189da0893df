#include "tune/measure_waits.h"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/timing.h"

namespace unisono::cli {
namespace {

constexpr WaitPolicy kWithRoom[] = {{.spin = 3000, .yield_us = 500},
                                    {.spin = 300, .yield_us = 500},
                                    {.spin = 30000, .yield_us = 500},
                                    {.spin = 3000, .yield_us = 5000}};
constexpr WaitPolicy kOversubscribed[] = {{.spin = 0, .yield_us = 500},
                                          {.spin = 0, .yield_us = 50},
                                          {.spin = 0, .yield_us = 5000},
                                          {.spin = 100, .yield_us = 500}};
constexpr std::size_t kSizes[] = {8, 4096, 65536};  // bytes
constexpr double kLeastTargetS = 0.0005;

// Whether there are more ranks than CPUs that any of them may use.
bool is_oversubscribed(Communicator& comm) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof(mine), &mine);
  auto words = std::bit_cast<std::array<std::uint64_t, sizeof(mine) / 8>>(mine);
  comm.all_reduce(words, ReduceOp::bor);
  int cpus = 0;
  for (const std::uint64_t word : words) {
    cpus += std::popcount(word);
  }
  return comm.size() > cpus;
}

// The same on all ranks, and of this job alone.
std::string job_name(Communicator& comm) {
  std::uint64_t number =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  comm.broadcast(std::span(&number, 1), 0);
  return fmt::format("tune-{:x}", number);
}

}  // namespace

void measure_waits(Communicator& comm, double seconds,
                   const std::function<void(const model::TimedWait&)>& report) {
  const bool oversubscribed = is_oversubscribed(comm);
  const std::span<const WaitPolicy> policies =
      oversubscribed ? std::span(kOversubscribed) : std::span(kWithRoom);
  const std::string job = job_name(comm);
  const double calls = static_cast<double>(policies.size() * std::size(kSizes));
  const double target_s = std::max(seconds / calls / 2, kLeastTargetS);  // half of it is set-up
  for (std::size_t i = 0; i < policies.size(); ++i) {
    ConnectOptions options;
    options.rank = comm.rank();
    options.size = comm.size();
    options.job = fmt::format("{}-{}", job, i);
    options.wait = to_text(policies[i]);
    Communicator world = Communicator::connect(options);
    for (const std::size_t bytes : kSizes) {
      std::vector<float> data(bytes / sizeof(float));
      const CallTiming timing =
          measure(world, {.target_s = target_s}, [&] { world.all_reduce(data, max); }, [] {});
      if (comm.rank() == 0) {
        report({.wait = {.ranks = comm.size(),
                         .oversubscribed = oversubscribed,
                         .policy = policies[i]},
                .bytes = static_cast<double>(bytes),
                .time_s = timing.time_us * 1e-6});
      }
    }
  }
}

}  // namespace unisono::cli
