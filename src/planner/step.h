// A training step as data: the computations of each rank, in the order of the pipeline schedule,
// and the collectives, with their ranks and bytes. It is a workload that the simulator plays on the
// topology, where groups share links.
#pragma once

#include <string>
#include <vector>

#include "network_model/simulator/workload.h"
#include "planner/training.h"
#include "topology/topology.h"

namespace unisono::planner {

// A rank executes the items of a stream in order.
struct StepItem {
  std::string name = {};
  std::vector<int> ranks = {};
  int stream = 0;
  double compute_us = 0;        // for items without a collective
  std::string collective = {};  // "all_reduce"
  std::string algorithm = {};
  double bytes = 0;
  int repeat = 1;
  std::vector<std::string> after = {};
};

struct Step {
  int ranks = 1;
  std::vector<StepItem> items = {};
};

inline constexpr int kMostStepRanks = 1024;

// Returns the step of `count` microbatches. The rank number of (tp, cp, dp, pp) counts tp first and
// pp last, so that tensor-parallel groups are neighbours. Errors: Error(usage) if there are more
// than kMostStepRanks ranks, or if the pipeline has no schedule of that shape.
Step make_step(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
               const Cluster& cluster, int count);

network_model::Workload workload_of(const Step& step);

// Writes the step as `unisono.workload/1`.
std::string to_json(const Step& step);

// Returns the time of the whole step. Simulates two numbers of microbatches, and extrapolates the
// time of one more. REQUIRES: the topology has the layout's devices.
double simulated_step_s(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                        const Cluster& cluster, const Topology& topology);

}  // namespace unisono::planner
