// The parts of `unisono pipeline`.
#pragma once

#include <string>

#include "cli/arguments.h"
#include "cli/console.h"
#include "pipeline/pipeline.h"

namespace unisono::cli {

// By name, or from a file (CSV or unisono.pipeline/1). Throws UsageError.
pipeline::Pipeline pipeline_of(const std::string& which, const Arguments& arguments);

int list_pipelines(const Console& console);
int verify_pipeline(const pipeline::Pipeline& pipeline, const Console& console);
int simulate_pipeline(const pipeline::Pipeline& pipeline, const Arguments& arguments,
                      const Console& console);
int show_pipeline(const pipeline::Pipeline& pipeline, const Arguments& arguments,
                  const Console& console);

}  // namespace unisono::cli
