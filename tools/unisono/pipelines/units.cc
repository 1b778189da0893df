// Formats times and memory of a pipeline in their units.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/bytes_text.h"
#include "pipelines/pipelines.h"
#include "plan/plan.h"

namespace unisono::cli {

bool ends_in_unit(const std::string& value) {
  return !value.empty() && std::isalpha(static_cast<unsigned char>(value.back())) != 0;
}

bool are_microseconds(const Arguments& arguments) {
  return arguments.has("on") || std::ranges::any_of(kPipelineTimes, [&](const char* option) {
           return arguments.has(option) && ends_in_unit(arguments.text(option));
         });
}

std::string pipeline_time(double time, const Arguments& arguments) {
  return are_microseconds(arguments) ? time_text(time * 1e-6) : fmt::format("{:.6g}", time);
}

nlohmann::ordered_json time_unit_json(const Arguments& arguments) {
  return are_microseconds(arguments) ? nlohmann::ordered_json("us")
                                     : nlohmann::ordered_json(nullptr);
}

bool holds_bytes(const pipeline::Pipeline& pipeline) {
  return std::ranges::any_of(pipeline.memory.activation_bytes,
                             [](double bytes) { return bytes != 1; });
}

std::string_view memory_unit(const pipeline::Pipeline& pipeline) {
  return holds_bytes(pipeline) ? "byte" : "microbatch";
}

std::string held_text(double held, const pipeline::Pipeline& pipeline) {
  return holds_bytes(pipeline)
             ? format_bytes(held)
             : fmt::format("{:.6g} microbatch{} of a stage", held, held == 1 ? "" : "es");
}

}  // namespace unisono::cli
