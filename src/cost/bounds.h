// The least that a collective can cost, whatever the algorithm, and what an algorithm claims to.
//
// The bounds are those of Chan, Heimlich, Purkayastha and van de Geijn, CCPE 19(13), 2007, for a
// one-port network. Each of the three holds on its own; an algorithm need not reach all at once.
// Networks that reduce or multiply data in their switches, and ranks with several ports, may be
// faster.
#pragma once

#include "algorithms/catalog.h"
#include "cost/cost.h"
#include "unisono/types.hpp"

namespace unisono::cost {

struct Bound {
  double messages = 0;
  double bytes = 0;
  double reduced_bytes = 0;

  // The largest of the three, after the floor.
  double time_s(const Parameters& parameters) const;
};

// `vector_bytes` as in cost.h. REQUIRES: ranks >= 1.
Bound lower_bound(Collective collective, int ranks, double vector_bytes);

// The algorithm's closed formula, and the floor. REQUIRES: it can serve the shape.
double closed_time_s(const Algorithm& algorithm, Shape shape, double vector_bytes,
                     const Parameters& parameters);

}  // namespace unisono::cost
