// A training step as data: what each rank computes, in the order of the pipeline schedule, and
// which collective of which ranks moves how many bytes. It is a workload that the simulator plays
// on the topology itself, where groups share links.
#pragma once

#include <string>
#include <vector>

#include "network_model/simulator/workload.h"
#include "planner/training.h"
#include "topology/topology.h"

namespace unisono::planner {

// A rank takes the items of a stream in their order.
struct StepItem {
  std::string name = {};
  std::vector<int> ranks = {};
  int stream = 0;
  double compute_us = 0;        // with no collective
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

// The step of `count` microbatches. The rank of (tp, cp, dp, pp) counts tp first and pp last, so
// that groups of tensor parallelism are neighbours. Errors: Error(usage) for more than
// kMostStepRanks, or where the pipeline has no schedule of that shape.
Step make_step(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
               const Cluster& cluster, int count);

network_model::Workload workload_of(const Step& step);

// The same as `unisono.workload/1`.
std::string to_json(const Step& step);

// Returns the time of the whole step. It plays two numbers of microbatches and extrapolates the
// time of one more. REQUIRES: the topology has the layout's devices.
double simulated_step_s(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                        const Cluster& cluster, const Topology& topology);

}  // namespace unisono::planner
