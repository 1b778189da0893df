// Proves that an MSCCL++ plan is right, regardless of its author: every contribution once, nothing
// read before it is there, no two operations at one place unordered, no deadlock, no GPU's memory
// touched before it has begun or after it has ended, and counters that are back where they were.
#pragma once

#include <cstddef>
#include <vector>

#include "executors/flaw.h"
#include "mscclpp/plan.h"

namespace unisono::mscclpp {

struct PlanProof {
  std::vector<executors::Flaw>
      flaws;                      // empty: the plan is right, in the way in which it says it runs
  int root = 0;                   // for which it is: files do not say it
  std::size_t most_blocks = 0;    // of a GPU, which all run at once
  std::size_t longest_block = 0;  // in operations
  int most_scratch = 0;           // of a GPU, in chunks
};

PlanProof check(const ExecutionPlan& plan);

}  // namespace unisono::mscclpp
