// Puts the operations of one thread block together, with what the executor needs between them.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "mscclpp/plan.h"

namespace unisono::mscclpp {

class ThreadBlockWriter {
 public:
  // With a `nop` before it where the threads must come together first: data that others are told
  // of, what was awaited, places that an operation since the last nop has touched, and counters
  // that another thread has counted since then.
  void append(PlanOperation operation);
  void acquire(int semaphore);
  void release(int semaphore);
  void signal(int channel);
  void wait(int channel);

  // In pieces that the executor takes, each of which starts when the one before it has ended:
  // `semaphores`, those of the GPU, get one for each end.
  std::vector<ThreadBlock> finish(std::vector<int>& semaphores) &&;

 private:
  bool needs_nop(const PlanOperation& operation) const;
  bool meets_open_data(const PlanOperation& operation) const;
  void append_counter(OperationType type, int counter);
  bool is_of_other_thread(OperationType type, int counter, std::size_t thread) const;

  ThreadBlock operations_;
  std::vector<PlanOperation> open_;  // with data, since the last nop
  bool has_waited_ = false;          // since then
  // The thread that counts each counter since then: its index in an operation's list.
  std::map<std::pair<OperationType, int>, std::size_t> threads_;
};

}  // namespace unisono::mscclpp
