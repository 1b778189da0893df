// Programs in the ways in which other tools write them, for the tests.
#pragma once

#include <string>

#include "msccl/program.h"

namespace unisono::msccl::testing {

// all_reduce in place: each GPU gets a part of everybody's input in scratch, adds it to its own
// with `re`, behind a nop for each block that received, and sends the sums to all.
MscclProgram all_pairs(int gpus);

// all_reduce around a ring with fused steps: rrs on the way, rrc at the end, then rcs.
MscclProgram fused_ring(int gpus);

// all_gather on two channels; what comes from the left goes on to the right by rcs.
MscclProgram forwarding_all_gather(int gpus);

}  // namespace unisono::msccl::testing
