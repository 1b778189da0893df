// Measures the algorithms of the catalogue, as one rank of a job.
//
// Measures sizes in two rounds: first sizes far apart, then the sizes between them. An algorithm
// that is far slower than the best is not measured at larger sizes. Algorithms with the same
// schedule for this number of ranks are measured once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cost/machine.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

struct MeasureOptions {
  std::uint64_t most_bytes = 0;
  double seconds = 0;                     // after this time the rest is left out
  std::vector<std::uint64_t> sizes = {};  // instead of the default sizes, in ascending order
};

// Collective. Reports each point on rank 0 as soon as it is measured.
void measure_algorithms(Communicator& comm, const MeasureOptions& options,
                        const std::function<void(const cost::Point&)>& report);

}  // namespace unisono::cli
