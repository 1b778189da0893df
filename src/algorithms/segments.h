// The number of segments of a pipeline.
#pragma once

#include "algorithms/catalog.h"

namespace unisono {

// Returns the number s >= 1 of segments for which a pipeline that is `fill` steps deep takes the
// least time. The time
//
//   (fill + s) * (alpha + bytes/s * beta)
//
// has its minimum at a whole number next to s = sqrt(fill * bytes*beta / alpha). Returns at most
// `bytes` segments; for alpha = 0, as many as there are bytes, up to 2^20. REQUIRES: fill >= 0,
// bytes, alpha and beta >= 0.
int optimal_segments(int fill, double bytes, double alpha, double beta);

// As above, for an algorithm that takes `segments`. Its steps(s) must be fill + rate*s; for
// example, a broadcast by a chain has n-2 steps to fill. For a reduction, beta is the time to move
// and reduce a byte. REQUIRES: the algorithm takes segments.
int optimal_segments(const Algorithm& algorithm, Shape shape, double bytes, double alpha,
                     double beta);

}  // namespace unisono
