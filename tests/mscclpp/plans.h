// Plans in the ways in which other tools write them, for the tests.
#pragma once

#include "mscclpp/plan.h"

namespace unisono::mscclpp::testing {

// all_reduce of two GPUs in place, that reads and writes the other one's memory while it adds
// (`rres`, `rre`), and takes a part with `get`.
ExecutionPlan reading_pair();

// all_gather where every GPU puts its part to all others with one operation, on two thread blocks
// that meet at barriers.
ExecutionPlan putting_to_all(int gpus);

// all_reduce where every GPU gets what the others have in scratch, and adds it up there: the place
// of the sum is the first source of one operation, and the last one of the next.
ExecutionPlan adding_in_scratch(int gpus);

}  // namespace unisono::mscclpp::testing
