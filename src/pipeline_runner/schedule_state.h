// What a PipelineSchedule is made of.
#pragma once

#include "pipeline/pipeline.h"

namespace unisono::parallel::detail {

struct ScheduleState {
  pipeline::Pipeline pipeline;  // right, and with transfers
  int capacity = 1;
};

}  // namespace unisono::parallel::detail
