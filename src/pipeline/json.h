// Reads and writes pipelines as JSON, `unisono.pipeline/1`: see docs/formats/pipeline.md.
#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "pipeline/pipeline.h"

namespace unisono {
class JsonNode;
}

namespace unisono::pipeline {

inline constexpr std::string_view kPipelineFormat = "unisono.pipeline/1";

std::string to_json(const Pipeline& pipeline);

// Reads a pipeline that is part of another document. Throws JsonProblem, like the getters of the
// node.
Pipeline pipeline_in(const JsonNode& node);

// The result has passed check(). The position of a failure is a JSON pointer or "byte N".
Parsed<Pipeline> parse_pipeline_json(std::string_view text);

}  // namespace unisono::pipeline
