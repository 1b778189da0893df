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

}  // namespace unisono::mscclpp::testing
