// Compares the simulator with SimGrid on the same platforms and schedules: simulated times, and the
// running times of the simulations.
//
//   simgrid_bench           prints the table
//   simgrid_bench --quick   a few small cases; exit code 1 if the median differs by more than 5 %
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "base/quantile.h"
#include "network_model/simulator/simulate.h"
#include "replay.h"
#include "topology/presets.h"

namespace unisono::bench {
namespace {

struct Case {
  const char* topology;
  Collective collective;
  const char* algorithm;
  int ranks;
  double bytes;
};

constexpr double kMiB = 1048576;

constexpr Case kQuick[] = {
    {"fat_tree:hosts=16,ports=8", Collective::all_reduce, "ring", 16, 16 * kMiB},
    {"dgx_h100:nodes=2", Collective::all_reduce, "halving_doubling", 16, 16 * kMiB},
    {"pcie_server:nodes=2", Collective::all_reduce, "halving_doubling", 16, 16 * kMiB},
    {"torus:x=4,y=2,z=2", Collective::all_gather, "recursive_doubling", 16, 4 * kMiB},
};

constexpr Case kAll[] = {
    {"fat_tree:hosts=64,ports=8", Collective::all_reduce, "ring", 64, 64 * kMiB},
    {"fat_tree:hosts=256,ports=16", Collective::all_reduce, "ring", 256, 256 * kMiB},
    {"rail_optimised:nodes=32", Collective::all_reduce, "ring", 256, 1024 * kMiB},
    {"ethernet_cluster:hosts=128,gbit_per_s=100", Collective::all_reduce, "recursive_doubling", 128,
     kMiB},
    {"dgx_h100:nodes=16", Collective::all_reduce, "ring", 128, 1024 * kMiB},
    {"dgx_h100:nodes=8", Collective::all_reduce, "halving_doubling", 64, 64 * kMiB},
    {"pcie_server:nodes=16", Collective::all_reduce, "halving_doubling", 128, 64 * kMiB},
    {"pcie_server:nodes=4", Collective::all_to_all, "pairwise", 32, 64 * kMiB},
    {"torus:x=8,y=8,z=4", Collective::all_reduce, "halving_doubling", 256, 64 * kMiB},
    {"dragonfly:groups=9,switches=4,hosts=2", Collective::all_to_all, "pairwise", 72, 16 * kMiB},
    {"torus:x=4,y=4,z=4", Collective::all_to_all, "pairwise", 64, 16 * kMiB},
    {"dragonfly:groups=8,switches=4,hosts=8", Collective::all_gather, "recursive_doubling", 256,
     64 * kMiB},
};

// Returns the schedule in steps, each waiting for the previous step. Both simulators get this
// schedule.
CompactSchedule steps_of(const Case& asked) {
  const Algorithm* algorithm = find_algorithm(asked.collective, asked.algorithm);
  const Schedule schedule =
      build_schedule(*algorithm, complete(*algorithm, {.ranks = asked.ranks}));
  CompactSchedule compact{.collective = Collective::all_reduce,  // a chunk is total size / chunks
                          .ranks = schedule.ranks,
                          .chunks = asked.collective == Collective::all_to_all
                                        ? schedule.chunks / schedule.ranks
                                        : schedule.chunks};
  for (auto& messages : messages_by_step(schedule)) {
    compact.phases.push_back({.name = {}, .messages = std::move(messages)});
  }
  return compact;
}

// Runs in a separate process, because SimGrid allows one engine per process.
Replayed replay_apart(const Topology& topology, const CompactSchedule& schedule, double bytes) {
  int ends[2] = {};
  Replayed result;
  if (::pipe(ends) != 0) {
    return result;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const Replayed found = replay(topology, schedule, bytes);
    const bool written = ::write(ends[1], &found, sizeof found) == sizeof found;
    std::_Exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  if (::read(ends[0], &result, sizeof result) != sizeof result) {
    result = {};
  }
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return result;
}

struct Row {
  double off = 0;      // relative difference
  double speedup = 0;  // wall time of SimGrid divided by unisono's
};

Row compare(const Case& asked, network_model::Contention contention) {
  Topology topology = *make_preset(asked.topology).value;
  topology.overhead_us = 0;
  const CompactSchedule schedule = steps_of(asked);
  network_model::Workload workload{.ranks = schedule.ranks};
  workload.items.push_back(
      {.bytes = asked.bytes, .compact = std::make_shared<const CompactSchedule>(schedule)});
  const auto begin = std::chrono::steady_clock::now();
  const network_model::SimulationResult ours =
      network_model::simulate(workload, topology, {.contention = contention, .rank_times = false});
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  const Replayed theirs = replay_apart(topology, schedule, asked.bytes);
  const Row row{.off = ours.total_us / theirs.simulated_us - 1,
                .speedup = theirs.wall_s / wall.count()};
  fmt::print(
      "{:<42} {:<30} {:>4} {:>9.0f}  {:>12.3f} {:>12.3f} {:>+7.2f} %  {:>8.4f} {:>8.3f} {:>6.0f}x  "
      "{}\n",
      asked.topology, fmt::format("{}/{}", to_string(asked.collective), asked.algorithm),
      asked.ranks, ours.messages, ours.total_us, theirs.simulated_us, 100 * row.off, wall.count(),
      theirs.wall_s, row.speedup, ours.shared_links ? "shared" : "alone");
  std::fflush(stdout);
  return row;
}

int run(std::span<const Case> cases) {
  fmt::print("{:<42} {:<30} {:>4} {:>9}  {:>12} {:>12} {:>9}  {:>8} {:>8} {:>7}  {}\n", "topology",
             "schedule", "n", "messages", "unisono (us)", "SimGrid (us)", "off", "wall (s)",
             "SimGrid", "faster", "links");
  std::vector<double> off;
  std::vector<double> speedups;
  for (const Case& asked : cases) {
    const Row row = compare(asked, network_model::Contention::automatic);
    off.push_back(std::abs(row.off));
    speedups.push_back(row.speedup);
  }
  fmt::print("median: off by {:.3f} %, {:.0f} times faster; least {:.0f} times\n",
             100 * median(off), median(speedups),
             *std::min_element(speedups.begin(), speedups.end()));
  constexpr double kMostOff = 0.05;
  return median(off) <= kMostOff ? 0 : 1;
}

}  // namespace
}  // namespace unisono::bench

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  return quick ? unisono::bench::run(unisono::bench::kQuick)
               : unisono::bench::run(unisono::bench::kAll);
}
