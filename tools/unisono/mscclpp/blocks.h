// Assembles the operations of one thread block, with the synchronisation that the executor needs
// between them.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "mscclpp/plan.h"

namespace unisono::mscclpp {

class ThreadBlockWriter {
 public:
  // Appends an operation. Adds a `nop` before it if the threads must synchronise first: for data
  // that other blocks are notified about, for results of a wait, for places that an operation has
  // touched since the last nop, and for counters that another thread has counted since then.
  void append(PlanOperation operation);
  void acquire(int semaphore);
  void release(int semaphore);
  void signal(int channel);
  void wait(int channel);

  // Returns the operations in pieces that the executor can run, each of which starts when the
  // previous one has ended: `semaphores`, those of the GPU, get one per end.
  std::vector<ThreadBlock> finish(std::vector<int>& semaphores) &&;

 private:
  bool needs_nop(const PlanOperation& operation) const;
  bool meets_open_data(const PlanOperation& operation) const;
  void append_counter(OperationType type, int counter);
  bool is_of_other_thread(OperationType type, int counter, std::size_t thread) const;

  ThreadBlock operations_;
  std::vector<PlanOperation> open_;  // operations with data since the last nop
  bool has_waited_ = false;          // since the last nop
  // The thread that has counted each counter since the last nop: its index in an operation's list.
  std::map<std::pair<OperationType, int>, std::size_t> threads_;
};

}  // namespace unisono::mscclpp
