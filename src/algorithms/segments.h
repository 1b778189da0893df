// The number of segments of a pipeline.
#pragma once

#include "algorithms/catalog.h"

namespace unisono {

// The number s >= 1 of segments for which a pipeline takes least time that is `fill` steps deep:
//
//   (fill + s) * (alpha + bytes/s * beta)
//
// has its minimum at s = sqrt(fill * bytes*beta / alpha), at one of the whole numbers beside it. No
// more segments than bytes. For alpha = 0: as many as there are bytes, up to 2^20.
// REQUIRES: fill >= 0, bytes, alpha and beta >= 0.
int optimal_segments(int fill, double bytes, double alpha, double beta);

// For an algorithm that takes `segments`: of its steps(s) = fill + rate*s, so that a broadcast by a
// chain has n-2 steps to fill. Where data is reduced, beta is the time to move and to reduce a
// byte. REQUIRES: the algorithm takes segments.
int optimal_segments(const Algorithm& algorithm, Shape shape, double bytes, double alpha,
                     double beta);

}  // namespace unisono
