// The training step of a decoder: forward pass, backward pass and optimiser. Layers have rotary or
// other positions, and an inner part of one or two matrices, or experts.
//
//   pp       layers are cut into the stages of a pipeline, with a schedule of the catalogue
//   rep, dp  sequences are cut; ZeRO (Rajbhandari et al., 2020) shards over dp, ep, cp and uly, and
//            the state of experts over the same axes without ep; it is replicated over rep
//   ep       sequences are cut as by dp, and so are experts: rows are sent to the experts chosen
//            for them (Lepikhin et al., 2020)
//   cp       positions of the sequence are cut: keys and values travel around a ring, and their
//            gradients return with them, or they are gathered
//   uly      positions are cut outside attention, heads inside (Jacobs et al., 2023)
//   tp       heads, the inner width and perhaps the vocabulary are cut; with `sequence` also the
//            rows outside these regions (Korthikanti et al., 2022)
#pragma once

#include <string_view>

#include "planner/shape.h"
#include "step/step.h"
#include "step/training_task.h"

namespace unisono::step {

// Parses "zero=3 sp vocab all_gather contiguous striped 1f1b m=8 v=2", in any order. Errors: usage.
TrainingTask parse_training(std::string_view words);

// Errors: config for a mesh with other axes; usage for ep without experts, and for an impossible
// pipeline, such as with a tied head.
Step make_training_step(const planner::ModelShape& shape, std::string_view mesh,
                        const TrainingTask& task);

}  // namespace unisono::step
