// The agreement between the ranks of a pipeline before the first step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "unisono/parallel/pipeline.hpp"

namespace unisono::parallel::detail {

// Returns the output of each stage; unset for the last one of a chain. `problem`: what is wrong on
// this rank, or empty. Collective. Errors: mismatch on all ranks if schedules or shapes differ, or
// another rank has a problem; usage on the ranks with a problem.
std::vector<std::optional<TensorSpec>> agree(Communicator& comm, const pipeline::Pipeline& pipeline,
                                             const std::vector<PipelineStage>& stages,
                                             const std::string& problem);

}  // namespace unisono::parallel::detail
