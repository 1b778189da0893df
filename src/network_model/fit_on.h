// A topology whose figures are fitted to measurements. What was not measured then follows from its
// structure: other rank counts, more nodes, other collectives.
#pragma once

#include <functional>
#include <span>

#include "network_model/holdout.h"
#include "topology/topology.h"

namespace unisono::network_model {

// The factors of a topology's figures.
struct Factors {
  double start = 1;    // what an operation starts in
  double message = 1;  // what a message costs besides
  double near = 1;     // bandwidth of links inside a node
  double far = 1;      // of all others
};

struct FittedTopology {
  Topology topology = {};
  Factors factors = {};
  bool has_far = false;  // whether a measurement is of ranks on several nodes
};

// With the factors that leave the least mean of |ln(predicted / measured)|, found by a search from
// the figures as they are. A topology without protocols gets one, so that there is a start to fit.
// For a library that chose itself, the fastest algorithm of the catalogue is predicted. `begins` is
// told how often all points were predicted. Errors: Error(usage) if a point has more ranks than the
// topology, or an algorithm that plan_on() does not try.
FittedTopology fit_on(
    std::span<const cost::Point> points, const Topology& topology,
    const std::function<void(int)>& begins = [](int) {});

// Returns the errors of the unchanged topology on the points.
Errors errors_on(const Topology& topology, std::span<const cost::Point> points);

}  // namespace unisono::network_model
