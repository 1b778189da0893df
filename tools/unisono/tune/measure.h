// Measures the algorithms of the catalogue, as one rank of a job.
//
// Sizes are taken in two rounds, far apart first. An algorithm that is far slower than the best is
// not tried at larger sizes. Then all is measured again, until the time is up, but twice at most.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/machine.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

struct MeasureOptions {
  std::uint64_t most_bytes = 0;
  double seconds = 0;
};

// Collective. Each point is reported on rank 0 as soon as it is there.
void measure_algorithms(Communicator& comm, const MeasureOptions& options,
                        const std::function<void(const model::Point&)>& report);

// The sizes of both rounds.
std::vector<std::uint64_t> coarse_sizes(std::uint64_t most_bytes);
std::vector<std::uint64_t> fine_sizes(std::uint64_t most_bytes);

}  // namespace unisono::cli
