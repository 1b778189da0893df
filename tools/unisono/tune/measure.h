// Measures the algorithms of the catalogue, as one rank of a job.
//
// Sizes are taken in two rounds, far apart first. An algorithm that is far slower than the best is
// not tried at larger sizes. Algorithms whose schedules for so many ranks are the same are measured
// as one.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cost/machine.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

struct MeasureOptions {
  std::uint64_t most_bytes = 0;
  double seconds = 0;                     // when these are over, the rest is left out
  std::vector<std::uint64_t> sizes = {};  // in the place of the usual ones; they rise
};

// Collective. Each point is reported on rank 0 as soon as it is there.
void measure_algorithms(Communicator& comm, const MeasureOptions& options,
                        const std::function<void(const cost::Point&)>& report);

}  // namespace unisono::cli
