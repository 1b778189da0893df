// A pipeline as bare orders of F, I and W, from which new orders are made: fast to time, without
// transfers, lanes or overlaps.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "pipeline/pipeline.h"

namespace unisono::pipeline {

// F, I or W (kind 0, 1, 2) of a microbatch of a stage.
struct Task {
  int stage = 0;
  int microbatch = 0;
  int kind = 0;

  bool operator==(const Task&) const = default;
};

using Orders = std::vector<std::vector<Task>>;  // by rank

// The start of each task of an order, and the dependency that determines it.
struct Timing {
  double makespan = std::numeric_limits<double>::infinity();  // infinite: ranks wait in a cycle
  std::vector<double> start = {};                             // by Tasks::id()
  std::vector<double> end = {};
};

// The dependencies and costs of tasks. Keeps a reference to the pipeline, but ignores its actions.
class Tasks {
 public:
  explicit Tasks(const Pipeline& pipeline);

  std::size_t count() const { return 3 * stages_ * microbatches_; }
  std::size_t id(const Task& task) const {
    return (static_cast<std::size_t>(task.stage) * microbatches_ +
            static_cast<std::size_t>(task.microbatch)) *
               3 +
           static_cast<std::size_t>(task.kind);
  }
  double duration(const Task& task) const {
    return durations_[3 * static_cast<std::size_t>(task.stage) +
                      static_cast<std::size_t>(task.kind)];
  }
  // The predecessors of a task: one on another stage, with the transfer time of its result, and one
  // on the same stage. A stage of -1 means none.
  struct Needs {
    Task far = {.stage = -1};
    double travel = 0;
    Task near = {.stage = -1};
  };
  Needs needs(const Task& task) const;
  // Returns the task on another stage that waits for this one; a stage of -1 means none.
  Task follower(const Task& task) const;
  // Returns when the predecessors of a task are complete, given the ends of tasks; negative if
  // unknown.
  double ready(const Task& task, const std::vector<double>& end) const;

  void time(const Orders& orders, Timing& timing) const;
  double peak_bytes(const std::vector<Task>& order) const;
  int rank_of(int stage) const { return pipeline_.stage_rank[static_cast<std::size_t>(stage)]; }
  const Pipeline& pipeline() const { return pipeline_; }
  const Neighbours& around() const { return around_; }

 private:
  const Pipeline& pipeline_;
  Neighbours around_;
  std::size_t stages_;
  std::size_t microbatches_;
  std::vector<double> durations_;
};

// Converts B to I and W, and overlaps to their parts; drops everything else.
Orders orders_of(const Pipeline& pipeline);
// Adds transfers. Everything except the actions comes from `frame`.
Pipeline with_orders(const Pipeline& frame, const Orders& orders);

}  // namespace unisono::pipeline
