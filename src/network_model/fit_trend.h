// The trend of measured times (cost/trend.h).
#pragma once

#include <span>

#include "cost/trend.h"
#include "cost/work.h"

namespace unisono::network_model {

// One measurement.
struct Measured {
  cost::Work work;
  int ranks = 1;
  double bytes = 0;
  double time_s = 0;
  double noise = 0;  // relative error of the time
};

// Returns the trend with the least relative deviation from the measurements; outliers count less.
// Parameters that the measurements hardly determine stay near a guess, which is derived from the
// shortest times and the largest sizes. A reducing switch, and a cost factor of bytes for each rank
// count, are fitted only if there are at least three rank counts: with fewer, any curve could be a
// ring. With `own_latencies` every rank count has a latency factor. Deterministic. REQUIRES: not
// empty; bytes >= 0 and times > 0, all finite.
cost::Trend fit_trend(std::span<const Measured> measured, bool own_latencies);

}  // namespace unisono::network_model
