// Schedules of two stages in a V that repeat one block: the six passes of a microbatch on each rank
// (two each of F, I and W) have fixed slots of a clock of six, and every microbatch follows the one
// before by six slots.
#pragma once

#include "pipeline/order.h"

namespace unisono::pipeline {

// How many slots after the pass before it a pass begins at least: on the way to the last rank and
// back, forward and backward. The sum decides how long activations live.
struct BlockDelays {
  int down = 1;
  int up = 1;
  int down_gradient = 1;
  int up_gradient = 1;
};

Pipeline build_v_blocks(PipelineSize shape, BlockDelays delays);

}  // namespace unisono::pipeline
