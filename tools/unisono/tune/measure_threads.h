// Measures the best number of threads per rank for long calls, as one rank of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "network_model/choose.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

// The shortest call that is timed. Helper threads take part in no call that is much shorter.
inline constexpr std::uint64_t kShortestForThreads = 128 << 10;

// Returns the numbers of threads worth measuring: the named ones, or else 1, 2, 4 and so on up to
// the CPUs for each rank. Empty if there is nothing to compare.
std::vector<int> thread_counts(const std::vector<int>& named, int ranks, int cpus);

// Joins a world for each of `counts`, and times the calls with helper threads, up to `most_bytes`,
// in all worlds in turn. Ends after `seconds`, but not before the smallest size. Collective. Each
// time is reported on rank 0.
void measure_threads(Communicator& comm, const std::vector<int>& counts, std::uint64_t most_bytes,
                     double seconds,
                     const std::function<void(const network_model::TimedThreads&)>& report);

}  // namespace unisono::cli
