// Finds pairs of steps that access one place without a defined order, if one of the two writes.
#pragma once

#include <vector>

#include "executors/contents.h"
#include "executors/flaw.h"
#include "msccl/order.h"

namespace unisono::msccl {

// Order exists between the steps of a block, a step and the one that it depends on, and a receive
// and its send. Uses vector clocks (Fidge 1988, Mattern 1989) over the blocks of one GPU at a time.
std::vector<executors::Flaw> find_hazards(const MscclProgram& program, const StepTable& table,
                                          const Order& order,
                                          const executors::BufferContents& memory);

}  // namespace unisono::msccl
