#include "tune/measure_waits.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "bench/timing.h"
#include "tune/other_worlds.h"

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

}  // namespace

void measure_waits(Communicator& comm, double seconds,
                   const std::function<void(const network_model::TimedWait&)>& report) {
  OtherWorlds worlds(comm);
  const bool oversubscribed = comm.size() > worlds.cpus();
  const std::span<const WaitPolicy> policies =
      oversubscribed ? std::span(kOversubscribed) : std::span(kWithRoom);
  const double calls = static_cast<double>(policies.size() * std::size(kSizes));
  const double target_s =
      std::max(seconds / calls / 2, kLeastTargetS);  // half of the time is set-up
  for (const WaitPolicy& policy : policies) {
    ConnectOptions options;
    options.wait = {.spin = policy.spin, .yield_us = policy.yield_us};
    Communicator world = worlds.connect(options);
    for (const std::size_t bytes : kSizes) {
      std::vector<float> data(bytes / sizeof(float));
      const CallTiming timing =
          measure(world, {.target_s = target_s}, [&] { world.all_reduce(data, max); }, [] {});
      if (comm.rank() == 0) {
        report({.wait = {.ranks = comm.size(), .oversubscribed = oversubscribed, .policy = policy},
                .bytes = static_cast<double>(bytes),
                .time_s = timing.time_us * 1e-6});
      }
    }
  }
}

}  // namespace unisono::cli
