// Measures wait policies, as one rank of a job.
#pragma once

#include <functional>

#include "network_model/choose.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

// Joins a separate world for each policy, and times short and medium calls in it. Collective.
// Reports each time on rank 0.
void measure_waits(Communicator& comm, double seconds,
                   const std::function<void(const network_model::TimedWait&)>& report);

}  // namespace unisono::cli
