// Proves that a program of MSCCL is correct: every contribution counts once, nothing is read before
// it is written, no two blocks access one place in undefined order, and there is no deadlock.
#pragma once

#include <cstddef>
#include <vector>

#include "executors/flaw.h"
#include "msccl/program.h"

namespace unisono::msccl {

struct Proof {
  std::vector<executors::Flaw> flaws;  // empty: the program is right for all forms that it declares
  // The least number of messages that a connection must hold, so that no step waits forever.
  std::size_t room = 1;
  std::size_t longest_block = 0;  // in steps
};

// The limit of MSCCL's executor for one thread block (msccl.h, MSCCL_MAX_NUM_STEPS).
inline constexpr std::size_t kMostStepsOfBlock = 256;

Proof check(const MscclProgram& program);

}  // namespace unisono::msccl
