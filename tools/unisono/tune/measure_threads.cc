#include "tune/measure_threads.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/deadline.h"
#include "bench/cases.h"
#include "bench/timing.h"
#include "tune/other_worlds.h"
#include "unisono/options.hpp"

namespace unisono::cli {
namespace {

constexpr std::uint64_t kLong[] = {kShortestForThreads, 512 << 10, 2 << 20, 8 << 20,
                                   32 << 20};  // bytes
constexpr Collective kCut[] = {Collective::all_reduce, Collective::reduce_scatter,
                               Collective::all_gather, Collective::all_to_all,
                               Collective::broadcast};
constexpr double kLeastTimedS = 0.001;

double time_call(Communicator& world, Collective collective, std::uint64_t bytes, double target_s,
                 std::vector<float>& in, std::vector<float>& out) {
  const Case row{
      .workload = {.send_recv = false, .collective = collective}, .algorithm = {}, .bytes = bytes};
  const CaseCounts layout = layout_of(row, world.rank(), world.size());
  in.resize(std::max(in.size(), layout.in_count));
  out.resize(std::max(out.size(), layout.out_count));
  const Call call{.collective = collective,
                  .in = layout.in_count == 0 ? nullptr : in.data(),
                  .out = layout.out_count == 0 ? nullptr : out.data(),
                  .count = layout.count,
                  .dtype = row.dtype,
                  .root = row.root};
  return measure(
             world, {.target_s = target_s, .least_iterations = 1, .brief = true},
             [&] { world.run(call); }, [] {})
             .time_us *
         1e-6;
}

}  // namespace

std::vector<int> thread_counts(const std::vector<int>& named, int ranks, int cpus) {
  std::vector<int> counts = named;
  const int most = std::min(cpus / ranks, kMostThreads);
  for (int threads = 1; named.empty() && threads < most; threads *= 2) {
    counts.push_back(threads);
  }
  if (named.empty()) {
    counts.push_back(most);
  }
  return ranks > 1 && counts.size() > 1 ? counts : std::vector<int>();
}

void measure_threads(Communicator& comm, const std::vector<int>& counts, std::uint64_t most_bytes,
                     double seconds,
                     const std::function<void(const network_model::TimedThreads&)>& report) {
  constexpr double kLongestS = 1e6;  // the limit of a count of milliseconds
  const Deadline deadline =
      Deadline::after_ms(static_cast<int>(std::min(seconds, kLongestS) * 1e3));
  const double calls = static_cast<double>(counts.size() * std::size(kLong) * std::size(kCut));
  const double target_s =
      std::max(seconds / calls / 2, kLeastTimedS);  // half of the time is set-up
  OtherWorlds worlds(comm);
  std::vector<Communicator> joined;
  for (const int threads : counts) {
    ConnectOptions options;
    options.threads = threads;
    joined.push_back(worlds.connect(options));
  }
  std::vector<float> in;
  std::vector<float> out;
  for (const std::uint64_t bytes : kLong) {
    for (const Collective collective : kCut) {
      std::uint8_t goes_on =
          bytes <= most_bytes && (bytes == kLong[0] || !deadline.passed()) ? 1 : 0;
      comm.broadcast(std::span(&goes_on, 1), 0);
      if (goes_on == 0) {
        return;
      }
      for (std::size_t i = 0; i < counts.size(); ++i) {
        const double time_s = time_call(joined[i], collective, bytes, target_s, in, out);
        if (comm.rank() == 0) {
          report({.of = {.collective = collective,
                         .ranks = comm.size(),
                         .from_bytes = static_cast<double>(bytes),
                         .threads = counts[i]},
                  .time_s = time_s});
        }
      }
    }
  }
}

}  // namespace unisono::cli
