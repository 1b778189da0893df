// The operations of a plan's thread blocks, as their JSON has them.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "executors/steps.h"
#include "mscclpp/plan.h"

namespace unisono::mscclpp {

// The meaning of the numbers in a thread block's operations.
struct BlockScope {
  const ExecutionPlan& plan;            // as far as its GPUs' buffers, channels and semaphores go
  executors::StepId at;                 // the operation; a step of -1: the lists of the block
  std::vector<int> channels = {};       // of the GPU
  std::vector<PlanPlace> buffers = {};  // of others

  const PlanGpu& gpu() const { return plan.gpus[static_cast<std::size_t>(at.gpu)]; }
};

// A list that numbers of a file count in: things of the GPU, or only those of the thread block.
struct NumberedList {
  std::string_view thing;  // "channel"
  std::size_t size = 0;
  bool is_of_block = false;
};

// These throw JsonProblem.
PlanOperation read_operation(const JsonNode& node, const BlockScope& scope);
Buffer read_buffer(const JsonNode& node);
std::size_t read_index(const JsonNode& node, const NumberedList& list, const executors::StepId& at);
void expect_memory_channel(const JsonNode& type);

}  // namespace unisono::mscclpp
