// Estimates the share of training throughput that remains with failures and checkpoints.
#pragma once

#include "planner/layout.h"

namespace unisono::planner {

struct FailureRates {
  double device_mtbf_s = 0;        // mean time between failures of one device
  double storage_bytes_per_s = 0;  // of all devices together
  double restart_s = 0;            // from a failure until steps continue
};

struct Goodput {
  double share = 0;               // of the time, spent on steps that are kept
  double failure_every_s = 0;     // of the whole job
  double checkpoint_bytes = 0;    // weights, with their f32 copies and moments
  double checkpoint_s = 0;        // steps pause while it is written
  double checkpoint_every_s = 0;  // the cheapest interval
};

// A share of 0 means that failures come faster than restarts. Source of the interval: Daly, 2006,
// whose first-order form is Young, 1974.
Goodput goodput_of(const ModelShape& shape, const TrainingTask& task, int devices,
                   const FailureRates& rates);

}  // namespace unisono::planner
