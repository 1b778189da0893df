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
  double noise = 0;  // how far that may be off, in proportion
};

// The trend that is nearest to all of them in proportion, outliers counting less, and parameters
// that they say little about staying near a guess made from the quickest and the largest of them.
// Whether the switch reduces, and whether bytes cost the same among all rank counts, is asked only
// of three counts and more: with less, any curve could be a ring. With `own_latencies` every rank
// count has a latency factor. Deterministic. REQUIRES: not empty; bytes >= 0 and times > 0, all
// finite.
cost::Trend fit_trend(std::span<const Measured> measured, bool own_latencies);

}  // namespace unisono::network_model
