// The training step of a decoder: forward pass, backward pass and optimiser. Layers have rotary or
// other positions, and a feed-forward block that is plain, gated, or made of experts. Each axis of
// the mesh shards a part of the work:
//
//   pp       layers, into the stages of a pipeline with a schedule of the catalogue
//   rep, dp  sequences. ZeRO (Rajbhandari et al., 2020) shards the model state over dp, ep, cp and
//            uly, and the state of experts over dp, cp and uly; the ranks of rep hold copies
//   ep       sequences, as dp does, and experts: each row is sent to the experts chosen for it
//            (Lepikhin et al., 2020)
//   cp       positions of the sequence. Keys and values travel around a ring, and their gradients
//            return with them; with `gathers_keys` keys and values are gathered instead
//   uly      positions outside attention, heads inside (Jacobs et al., 2023)
//   tp       heads, the inner width and, with `vocabulary`, the vocabulary. With `sequence` also
//            the rows outside these regions (Korthikanti et al., 2022)
#pragma once

#include <string_view>

#include "planner/shape.h"
#include "step/step.h"
#include "step/training_task.h"

namespace unisono::step {

// Parses words such as "zero=3 sp vocab all_gather contiguous striped 1f1b m=8 v=2", in any order.
// Errors: usage.
TrainingTask parse_training(std::string_view words);

// Errors: config for a mesh with other axes; usage for ep without experts, and for an impossible
// pipeline, such as with a tied head.
Step make_training_step(const planner::ModelShape& shape, std::string_view mesh,
                        const TrainingTask& task);

}  // namespace unisono::step
