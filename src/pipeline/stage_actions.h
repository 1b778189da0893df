// Actions on whole stages: UNSHARD, RESHARD and REDUCE_GRAD.
#pragma once

#include "pipeline/pipeline.h"

namespace unisono::pipeline {

// Copies these actions from `from`, a pipeline with the same stages, to `to`, which has none. Each
// action is done once: a stage is gathered before its first computation, reduced after its last
// one, and then freed.
void copy_stage_actions(const Pipeline& from, Pipeline& to);

}  // namespace unisono::pipeline
