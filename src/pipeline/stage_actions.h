// What a pipeline does on whole stages: UNSHARD, RESHARD and REDUCE_GRAD.
#pragma once

#include "pipeline/pipeline.h"

namespace unisono::pipeline {

// Gives `to`, which has none, those of `from`, a pipeline of the same stages. Each is done once: a
// stage is gathered before its first computation, reduced behind its last one, and freed then.
void copy_stage_actions(const Pipeline& from, Pipeline& to);

}  // namespace unisono::pipeline
