#include "cost/bounds.h"

#include <algorithm>

#include "base/collectives.h"

namespace unisono::cost {

double Bound::time_s(const Parameters& parameters) const {
  return parameters.floor_s +
         std::max({messages * parameters.alpha_s, bytes * parameters.beta_s_per_byte,
                   reduced_bytes * parameters.gamma_s_per_byte});
}

Bound lower_bound(Collective collective, int ranks, double vector_bytes) {
  if (ranks == 1) {
    return {};
  }
  Bound bound;
  for (int reached = 1; reached < ranks; reached += std::min(reached, ranks - reached)) {
    bound.messages += 1;  // One round at most doubles the number of ranks that have heard from a
                          // given rank.
  }
  const double others = vector_bytes * (ranks - 1) / ranks;
  bound.bytes = moves_data(collective) ? vector_bytes * bus_factor(collective, ranks) : 0;
  // All ranks together make at least n-1 additions; in exclusive_scan, n-2.
  const double own = collective == Collective::exclusive_scan ? vector_bytes / ranks : 0;
  bound.reduced_bytes = reduces(collective) ? others - own : 0;
  return bound;
}

double closed_time_s(const Algorithm& algorithm, Shape shape, double vector_bytes,
                     const Parameters& parameters) {
  return parameters.floor_s + algorithm.cost(complete(algorithm, shape),
                                             {.alpha = parameters.alpha_s,
                                              .beta = vector_bytes * parameters.beta_s_per_byte,
                                              .gamma = vector_bytes * parameters.gamma_s_per_byte});
}

}  // namespace unisono::cost
