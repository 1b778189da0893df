// V-Half: blocks in a V that hold half as many activations as 1F1B and ZBV. On the way back to rank
// 0, a pass waits two slots, forward and backward.
//
//   order   blocks in a V, one after the other at the shortest distance at which they fit, as in
//           the source. The waits within a block are our choice, and differ from the source
//   peak    at most p+4 microbatches of a stage (1F1B: 2p on rank 0) on each rank, as tested; the
//           source proves its own bounds for its own blocks
//   bubble  no formula
//   source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024
#include <algorithm>

#include "pipeline/v_blocks.h"

namespace unisono::pipeline {

const Entry v_half{
    .name = "v-half",
    .summary = "a V with half of the memory of 1F1B",
    .source = "Qi et al., 2024",
    .chunks = 2,
    .build = [](PipelineSize shape) { return build_v_blocks(shape, {.up = 2, .up_gradient = 2}); },
    .bubble = [](PipelineSize, Times) -> std::optional<double> { return std::nullopt; },
    .peak = [](PipelineSize shape,
               int) { return std::min(2 * shape.microbatches, shape.ranks + 4); },
    .is_peak_bound = true};

}  // namespace unisono::pipeline
