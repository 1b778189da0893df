// Derives sends and receives from the order of the computations, so that a schedule may omit them.
#pragma once

#include "pipeline/pipeline.h"

namespace unisono::pipeline {

bool has_transfers(const Pipeline& pipeline);

// Adds a send after each computation whose result another rank needs, and a receive before the
// first use of the message. The receives from one rank are in the order of this rank's sends. So if
// a receive must come early, the receives before it come early too. REQUIRES: check() passes, and
// there are no transfers yet.
void add_transfers(Pipeline& pipeline);

}  // namespace unisono::pipeline
