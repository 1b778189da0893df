// Estimates the time of a training step under a layout: its parts, and its bottleneck.
#pragma once

#include <array>
#include <map>

#include "planner/layout.h"
#include "planner/memory.h"

namespace unisono::planner {

// Seconds of the busiest stage. Their sum is the step.
struct StepParts {
  double compute = 0;    // matrix products
  double memory = 0;     // what moves through the device's memory
  double recompute = 0;  // of both, done again
  double tensor = 0;     // communication that nothing hides, by axis
  double context = 0;
  double experts = 0;
  double pipeline = 0;
  double data = 0;
  double bubble = 0;
  double optimiser = 0;
  double offload = 0;  // waited for the host's memory

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
  double low_s = 0;  // nine of ten steps take from this to high_s; 0: not known
  double high_s = 0;
  double tokens_per_s_device = 0;
  double flops_per_s_device = 0;  // that the model needs, without what is done again
  double utilisation = 0;         // of the device's peak
  double simulated_s = 0;         // of the step on the topology; 0: not simulated
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
  double tensor = 0;  // exchanges, forward; as many come backward
  double context = 0;
  double backward_context = 0;
  double experts = 0;
};
// Times of one layer of either kind, and of the head.
struct LayerTimes {
  Passes dense = {};
  Passes experts = {};
  Passes head = {};
};

// Seconds that a stage computes for one microbatch, without communication.
struct PassTimes {
  double forward_s = 0;  // of all parts of the stage
  double backward_s = 0;
  double head_forward_s = 0;  // what the last stage has besides
  double head_backward_s = 0;
};
PassTimes pass_times(const ModelShape& shape, const Layout& layout, const TrainingTask& task,
                     const Cluster& cluster);

// The share of the exchange of gradients and weights that the backward pass cannot hide.
inline constexpr double kExposedData = 0.3;

// FLOPs of a step, forward and backward, causal scores counted whole as published figures do.
double model_flops(const ModelShape& shape, const TrainingTask& task);

// By the formula alone. REQUIRES: problem_of() is empty; the cluster has so many devices.
TrainingEstimate estimate_training(const ModelShape& shape, const Layout& layout,
                                   const TrainingTask& task, const Cluster& cluster);

// The same for many layouts: those that cut a layer alike share the times of its nodes. What it is
// made of must outlive it. REQUIRES: all layouts have the same sequence_parallel.
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
