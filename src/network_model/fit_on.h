// Fits the figures of a topology to measurements. Cases that were not measured then follow from its
// structure: other rank counts, more nodes, other collectives.
#pragma once

#include <functional>
#include <span>

#include "network_model/holdout.h"
#include "topology/topology.h"

namespace unisono::network_model {

// The factors by which a topology's figures are multiplied.
struct Factors {
  double start = 1;    // time to start an operation
  double message = 1;  // overhead per message
  double near = 1;     // bandwidth of links inside a node
  double far = 1;      // bandwidth of all other links
};

struct FittedTopology {
  Topology topology = {};
  Factors factors = {};
  bool has_far = false;  // some measurement uses ranks on several nodes
};

// Returns the topology with the factors that minimise the mean of |ln(predicted / measured)|, found
// by a search from the original figures. A topology without protocols gets one, so that there is a
// starting time to fit. If a library chose its algorithm itself, the time of the fastest catalogue
// algorithm is predicted. Before each prediction of all points, calls `begins` with the number of
// the prediction. Errors: Error(usage) if a point has more ranks than the topology, or an algorithm
// that plan_on() does not try.
FittedTopology fit_on(
    std::span<const cost::Point> points, const Topology& topology,
    const std::function<void(int)>& begins = [](int) {});

// Returns the errors of the unchanged topology at the points.
Errors errors_on(const Topology& topology, std::span<const cost::Point> points);

}  // namespace unisono::network_model
