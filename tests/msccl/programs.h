// Programs in the styles of other tools, for the tests.
#pragma once

#include <string>

#include "msccl/program.h"

namespace unisono::msccl::testing {

// all_reduce in place: each GPU gets a part of every GPU's input in scratch, adds it to its own
// part with `re`, after a nop for each block that received, and sends the sums to all.
MscclProgram all_pairs(int gpus);

// all_reduce around a ring with fused steps: rrs in the middle, rrc at the end, then rcs.
MscclProgram fused_ring(int gpus);

// all_gather on two channels; data from the left is passed on to the right by rcs.
MscclProgram forwarding_all_gather(int gpus);

}  // namespace unisono::msccl::testing
