// The operations of a plan's thread blocks, as their JSON has them.
#pragma once

#include <vector>

#include "base/json.h"
#include "mscclpp/plan.h"

namespace unisono::mscclpp {

// What the numbers in the operations of a thread block stand for.
struct BlockScope {
  const ExecutionPlan& plan;  // as far as its GPUs' buffers, channels and semaphores go
  int gpu = 0;
  std::vector<int> channels = {};       // of the GPU
  std::vector<PlanPlace> buffers = {};  // of others
};

// These throw JsonProblem.
PlanOperation read_operation(const JsonNode& node, const BlockScope& scope);
Buffer read_buffer(const JsonNode& node);
void expect_memory_channel(const JsonNode& type);

}  // namespace unisono::mscclpp
