// Builds a training step whose layers are divided into the stages of a pipeline.
#pragma once

#include "step/training_units.h"

namespace unisono::step {

inline constexpr const char* kLossOfAll = "loss of all stages";

// Errors: usage if the schedule does not exist for this shape, or if the microbatches do not divide
// the sequences.
void add_pipeline(TrainingParts& parts);

// Adds forward and backward passes of each stage for a microbatch, and the work before and after
// all of them.
void make_passes(TrainingParts& parts, Units& units);

}  // namespace unisono::step
