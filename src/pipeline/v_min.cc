// V-Min: blocks in a V that hold about a third as many activations as 1F1B. Every pass begins as
// soon as the previous one has ended, so activations live as briefly as possible.
//
//   order   blocks in a V, one after the other at the shortest distance at which they fit, as in
//           the source
//   peak    at most 2p/3 + 3 microbatches of a stage (1F1B: 2p on rank 0) on each rank, as tested;
//           the source proves its own bounds for its own blocks
//   bubble  no formula
//   source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024
#include <algorithm>

#include "pipeline/v_blocks.h"

namespace unisono::pipeline {

const Entry v_min{
    .name = "v-min",
    .summary = "a V with a third of the memory of 1F1B",
    .source = "Qi et al., 2024",
    .chunks = 2,
    .build = [](PipelineSize shape) { return build_v_blocks(shape, {}); },
    .bubble = [](PipelineSize, Times) -> std::optional<double> { return std::nullopt; },
    .peak = [](PipelineSize shape,
               int) { return std::min(2 * shape.microbatches, 2 * shape.ranks / 3 + 3); },
    .is_peak_bound = true};

}  // namespace unisono::pipeline
