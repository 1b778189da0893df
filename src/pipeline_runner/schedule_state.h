// The state of a PipelineSchedule.
#pragma once

#include "pipeline/pipeline.h"

namespace unisono::parallel::detail {

struct ScheduleState {
  pipeline::Pipeline pipeline;  // verified, with transfers
  int capacity = 1;
};

}  // namespace unisono::parallel::detail
