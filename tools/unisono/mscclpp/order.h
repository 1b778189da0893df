// Runs a plan without data: finds a possible order of its operations, and the counters that they
// share.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "executors/steps.h"
#include "mscclpp/plan.h"

namespace unisono::mscclpp {

// The operations of a plan with their numbers.
class OperationTable : public executors::StepNumbers {
 public:
  explicit OperationTable(const ExecutionPlan& plan);

  const PlanOperation& operation(std::size_t index) const { return *operations_[index]; }
  // The same as operation(index).type. A proof asks for all of them once for each GPU: they lie
  // close together.
  OperationType type(std::size_t index) const { return types_[index]; }
  // The blocks of a GPU that meet at a barrier. REQUIRES: there are some.
  const std::vector<std::size_t>& blocks_at_barrier(int gpu, int barrier) const {
    return at_barriers_.at({gpu, barrier});
  }

 private:
  std::vector<const PlanOperation*> operations_;
  std::vector<OperationType> types_;
  std::map<std::pair<int, int>, std::vector<std::size_t>> at_barriers_;
};

// The counters of a plan, numbered through: one at each end of each channel, and the semaphores.
class CounterTable {
 public:
  CounterTable(const ExecutionPlan& plan, const OperationTable& table);

  std::size_t size() const { return initial_.size(); }
  int initial(std::size_t counter) const { return initial_[counter]; }
  // Returns the counters that an operation raises or lowers; none(): a signal that nobody can wait
  // for.
  std::span<const std::size_t> of(std::size_t operation) const {
    return std::span(used_).subspan(first_used_[operation],
                                    first_used_[operation + 1] - first_used_[operation]);
  }
  static constexpr std::size_t none() { return static_cast<std::size_t>(-1); }

 private:
  std::vector<int> initial_;
  std::vector<std::size_t> used_;        // by all operations, behind each other
  std::vector<std::size_t> first_used_;  // by each operation, and their end
};

struct PlanOrder {
  std::vector<std::size_t> operations;  // that could run, in a possible order; operations that meet
                                        // at a barrier are consecutive
  std::vector<std::size_t> stuck;       // the next operation of each block that could not run
  std::vector<int> counts;              // the value of each counter at the end
};

// The order in which blocks take their turns does not matter, because no other block can take the
// signal that a block waits for.
PlanOrder order_of(const OperationTable& table, const CounterTable& counters);

}  // namespace unisono::mscclpp
