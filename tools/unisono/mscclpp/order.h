// Runs a plan without data: in which order its operations can go, and what meets what.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "mscclpp/plan.h"

namespace unisono::mscclpp {

// All operations of a plan, numbered through.
class OperationTable {
 public:
  explicit OperationTable(const ExecutionPlan& plan);

  struct Id {
    int gpu = 0;
    int block = 0;
    int operation = 0;
  };
  std::size_t size() const { return ids_.size(); }
  Id id(std::size_t index) const { return ids_[index]; }
  const PlanOperation& operation(std::size_t index) const;
  std::size_t blocks() const { return first_.size(); }
  // A block, numbered through all GPUs: its first operation, and the one behind its last.
  std::size_t begin(std::size_t block) const { return first_[block]; }
  std::size_t end(std::size_t block) const;
  std::size_t block_number(Id id) const;
  std::size_t block_number(std::size_t index) const { return block_number(ids_[index]); }
  // The blocks of a GPU that meet at a barrier. REQUIRES: there are some.
  const std::vector<std::size_t>& blocks_at_barrier(int gpu, int barrier) const {
    return at_barriers_.at({gpu, barrier});
  }

 private:
  const ExecutionPlan& plan_;
  std::vector<Id> ids_;
  std::vector<std::size_t> first_;         // operation of each block
  std::vector<std::size_t> first_blocks_;  // of each GPU
  std::map<std::pair<int, int>, std::vector<std::size_t>> at_barriers_;
};

// The counters of a plan, numbered through: one at each end of each channel, and the semaphores.
class CounterTable {
 public:
  explicit CounterTable(const ExecutionPlan& plan);

  std::size_t size() const { return initial_.size(); }
  int initial(std::size_t counter) const { return initial_[counter]; }
  // Those that an operation of the GPU raises or lowers; none(): a signal that nobody can await.
  std::vector<std::size_t> of(int gpu, const PlanOperation& operation) const;
  static constexpr std::size_t none() { return static_cast<std::size_t>(-1); }

 private:
  const ExecutionPlan& plan_;
  std::vector<std::size_t> first_channel_;  // of each GPU
  std::vector<std::size_t> first_semaphore_;
  std::vector<std::vector<std::size_t>> raised_;  // by each channel of each GPU
  std::vector<int> initial_;
};

struct PlanOrder {
  std::vector<std::size_t> operations;  // that could run, in an order in which they can; those that
                                        // meet at a barrier stand behind each other
  std::vector<std::size_t> stuck;       // the next one of each block that could not
  std::vector<int> counts;              // what each counter has at the end
};

// It does not matter in which order blocks take their turns: who waits takes what only it can take.
PlanOrder order_of(const OperationTable& table, const CounterTable& counters);

}  // namespace unisono::mscclpp
