// Estimates the time of a training step under a layout, its parts, and its bottleneck.
#pragma once

#include <array>
#include <map>

#include "planner/layout.h"
#include "planner/memory.h"

namespace unisono::planner {

// Seconds of the busiest stage. Their sum is the time of the step.
struct StepParts {
  double compute = 0;    // matrix products
  double memory = 0;     // traffic of the device's memory
  double recompute = 0;  // recomputed products and memory traffic
  double tensor = 0;     // exposed communication, by axis
  double context = 0;
  double experts = 0;
  double pipeline = 0;
  double data = 0;
  double bubble = 0;
  double optimiser = 0;
  double offload = 0;  // exposed copies to and from host memory

  double total() const {
    return compute + memory + recompute + tensor + context + experts + pipeline + data + bubble +
           optimiser + offload;
  }
};

struct TrainingEstimate {
  Layout layout = {};
  StepParts parts = {};
  MemoryParts memory = {};
  double step_s = 0;
  double low_s = 0;  // nine of ten steps take low_s to high_s; 0: unknown
  double high_s = 0;
  double tokens_per_s_device = 0;
  double flops_per_s_device = 0;  // required by the model, without recomputation
  double utilisation = 0;         // share of the device's peak
  double simulated_s = 0;         // simulated time of the step on the topology; 0: not simulated
};

// Seconds of one microbatch on a rank.
struct OneWay {
  double compute = 0;
  double memory = 0;
  double total() const { return compute + memory; }
};
struct Passes {
  OneWay forward = {};
  OneWay backward = {};
  double tensor = 0;  // exchanges, forward; backward there are as many
  double context = 0;
  double backward_context = 0;
  double experts = 0;
};
// The times of one layer of each kind, and of the head.
struct LayerTimes {
  Passes dense = {};
  Passes experts = {};
  Passes head = {};
};

// The seconds that a stage computes for one microbatch, without communication.
struct PassTimes {
  double forward_s = 0;  // of all parts of the stage
  double backward_s = 0;
  double head_forward_s = 0;  // additional time of the last stage
  double head_backward_s = 0;
};
PassTimes pass_times(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                     const Cluster& cluster);

// The share of the exchange of gradients and weights that the backward pass cannot hide.
inline constexpr double kExposedData = 0.3;

// Returns the FLOPs of a step, forward and backward. Causal scores count whole, as in published
// figures.
double model_flops(const ModelShape& shape, const TrainingTask& task);

// Uses the formula alone. REQUIRES: problem_of() is empty; the cluster has the layout's devices.
TrainingEstimate estimate_training(const ModelShape& shape, const Layout& layout,
                                   const TrainingTask& task, const Cluster& cluster);

// Like estimate_training(), for many layouts: layouts that divide a layer alike share the times of
// its nodes. The constructor's arguments must outlive it. REQUIRES: all layouts have the same
// sequence_parallel.
class TrainingModel {
 public:
  TrainingModel(const ModelShape& shape, const TrainingTask& task, const Cluster& cluster)
      : shape_(shape), task_(task), cluster_(cluster) {}
  TrainingEstimate estimate(const Layout& layout);

 private:
  const ModelShape& shape_;
  const TrainingTask& task_;
  const Cluster& cluster_;
  std::map<std::array<int, 5>, LayerTimes> times_;  // by tp, cp, uly, ep and microbatch
};

}  // namespace unisono::planner
