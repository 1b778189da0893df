// Lower bounds on the cost of a collective, for any algorithm, and the closed formula of a given
// algorithm.
//
// The bounds are those of Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007, for a
// one-port network. Each of the three bounds holds on its own; an algorithm need not reach all of
// them at once. Networks whose switches reduce or multiply data, and ranks with several ports, may
// be faster.
#pragma once

#include "algorithms/catalog.h"
#include "cost/cost.h"
#include "unisono/types.hpp"

namespace unisono::cost {

struct Bound {
  double messages = 0;
  double bytes = 0;
  double reduced_bytes = 0;

  // Returns the floor plus the largest of the three bounds.
  double time_s(const Parameters& parameters) const;
};

// `vector_bytes` as in cost.h. REQUIRES: ranks >= 1.
Bound lower_bound(Collective collective, int ranks, double vector_bytes);

// Returns the algorithm's closed formula plus the floor. REQUIRES: the algorithm can serve the
// shape.
double closed_time_s(const Algorithm& algorithm, Shape shape, double vector_bytes,
                     const Parameters& parameters);

}  // namespace unisono::cost
