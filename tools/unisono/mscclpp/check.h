// Proves that an MSCCL++ plan is right, regardless of its author: every contribution counts once,
// no data is read before it has arrived, no two operations access one place in undefined order,
// there is no deadlock, no GPU's memory is accessed before the GPU has begun or after it has ended,
// and counters end at their initial values.
#pragma once

#include <cstddef>
#include <vector>

#include "executors/flaw.h"
#include "mscclpp/plan.h"

namespace unisono::mscclpp {

struct PlanProof {
  std::vector<executors::Flaw>
      flaws;     // empty: the plan is right for the form that it declares (in place or not)
  int root = 0;  // the root of the plan; files do not contain it
  std::size_t most_blocks = 0;    // of a GPU, which all run at once
  std::size_t longest_block = 0;  // in operations
  int most_scratch = 0;           // of a GPU, in chunks
};

PlanProof check(const ExecutionPlan& plan);

}  // namespace unisono::mscclpp
