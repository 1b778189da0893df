// Plans in the styles of other tools, for the tests.
#pragma once

#include "mscclpp/plan.h"

namespace unisono::mscclpp::testing {

// all_reduce of two GPUs in place, which reads and writes the other GPU's memory while it adds
// (`rres`, `rre`), and fetches a part with `get`.
ExecutionPlan reading_pair();

// all_gather in which every GPU puts its part to all others with one operation, on two thread
// blocks that synchronize at barriers.
ExecutionPlan putting_to_all(int gpus);

// all_reduce in which every GPU gets the other GPUs' data in scratch and adds it up there: the
// place of the sum is the first source of one operation, and the last source of the next.
ExecutionPlan adding_in_scratch(int gpus);

}  // namespace unisono::mscclpp::testing
