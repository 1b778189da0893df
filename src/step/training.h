// The step of a decoder that is trained: forward, backward and optimiser, of layers with rotary or
// other positions and an inner part of one or two matrices, or of experts.
//
//   pp       layers are cut into the stages of a pipeline, which microbatches pass as one of the
//            catalogue's schedules says
//   rep, dp  sequences are cut; what ZeRO shards (Rajbhandari et al., 2020) is sharded over dp, ep,
//            cp and uly, what experts have without ep, and the same on all of rep
//   ep       sequences are cut as by dp, and experts besides: rows go to those that were chosen
//            for them (Lepikhin et al., 2020)
//   cp       places of the sequence are cut: keys and values go around a ring, and their gradients
//            with them on the way back, or are gathered
//   uly      places are cut outside of attention, heads inside (Jacobs et al., 2023)
//   tp       heads, the inner width and perhaps the vocabulary are cut; with `sequence` also the
//            rows outside of them (Korthikanti et al., 2022)
#pragma once

#include <string_view>

#include "planner/shape.h"
#include "step/step.h"
#include "step/training_task.h"

namespace unisono::step {

// "zero=3 sp vocab all_gather contiguous striped 1f1b m=8 v=2", in any order. Errors: usage.
TrainingTask parse_training(std::string_view words);

// Errors: config, for a mesh with other axes; usage, for ep without experts, and a pipeline that
// cannot be, also of a model with a tied head.
Step make_training_step(const planner::ModelShape& shape, std::string_view mesh,
                        const TrainingTask& task);

}  // namespace unisono::step
