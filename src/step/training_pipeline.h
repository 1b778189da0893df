// A training step whose layers are cut into the stages of a pipeline.
#pragma once

#include "step/training_units.h"

namespace unisono::step {

inline constexpr const char* kLossOfAll = "loss of all stages";

// Errors: usage, for a schedule that there is not of that shape, or sequences that the microbatches
// do not divide.
void add_pipeline(TrainingParts& parts);

// Forward and backward of each stage for a microbatch, and what comes before and behind all of
// them.
void make_passes(TrainingParts& parts, Units& units);

}  // namespace unisono::step
