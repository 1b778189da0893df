// Checks before the first step that the ranks of a pipeline agree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/pipeline.h"
#include "unisono/parallel/pipeline.hpp"

namespace unisono::parallel::detail {

// Returns the output of each stage; unset for the last stage of a chain. `problem`: the error of
// this rank, or empty. Collective. Errors: mismatch on all ranks if schedules or shapes differ, or
// if another rank has a problem; usage on the ranks with a problem.
std::vector<std::optional<TensorSpec>> agree(Communicator& comm, const pipeline::Pipeline& pipeline,
                                             const std::vector<PipelineStage>& stages,
                                             const std::string& problem);

}  // namespace unisono::parallel::detail
