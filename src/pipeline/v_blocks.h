// Schedules of two stages per rank, laid out as a V, that repeat one block. A microbatch has six
// passes on each rank: two each of F, I and W. Each of them has a fixed slot in a period of six
// slots, and every microbatch follows the previous one after six slots.
#pragma once

#include "pipeline/order.h"

namespace unisono::pipeline {

// The minimum number of slots from one pass to the next: on the way to the last rank and back,
// forward and backward. Their sum determines how long activations live.
struct BlockDelays {
  int down = 1;
  int up = 1;
  int down_gradient = 1;
  int up_gradient = 1;
};

Pipeline build_v_blocks(PipelineSize shape, BlockDelays delays);

}  // namespace unisono::pipeline
