// The property of any bytes given as a config.json: they are refused with a message, or give a
// model that can be planned and whose step can be built.
#pragma once

#include <cmath>
#include <string>
#include <string_view>

#include "planner/config_json.h"
#include "planner/serving.h"
#include "step/decoder.h"
#include "step/verify.h"
#include "unisono/error.hpp"

namespace unisono::fuzz {

inline bool is_plausible(double value) {
  return std::isfinite(value) && value > 0;
}

inline std::string planning_property(const planner::ModelShape& shape) {
  using planner::ServingTask;
  const planner::Cluster cluster{
      .device = planner::find_device("h100").value_or(planner::DeviceModel{}),
      .devices = 1,
      .domain = 1,
      .near_bytes_per_s = 1e9,
      .far_bytes_per_s = 1e9};
  ServingTask task{.input = 5000, .output = 100};
  take_stored(shape, cluster.device, task);
  const auto plan = estimate_serving(shape, {}, task, cluster);
  return is_plausible(plan.memory.total()) && is_plausible(plan.token_s)
             ? ""
             : "its memory or its time is not a number";
}

// Builds a step of one token with few layers, because the other layers are equal.
inline std::string decoding_property(planner::ModelShape shape) {
  constexpr int kFewLayers = 3;
  shape.layers = std::min(shape.layers, kFewLayers);
  try {
    const step::Step step = step::make_decoder_step(shape, "tp=2", {.context = 100});
    return step::verify(step).empty() ? "" : "its step is not right";
  } catch (const Error& error) {
    return error.summary().empty() ? "a step refused without words" : "";
  }
}

// Returns an empty text if the property holds, otherwise the failure.
inline std::string config_json_property(std::string_view text) {
  const Parsed<planner::ModelConfig> parsed = planner::parse_config_json(text, "x");
  if (!parsed) {
    return parsed.message.empty() ? "refused without a message" : "";
  }
  const planner::ModelShape& shape = parsed.value->shape;
  if (!is_plausible(total_weights(shape)) || total_weights(shape) < active_weights(shape)) {
    return "its weights are not a number";
  }
  const std::string problem = planning_property(shape);
  return problem.empty() ? decoding_property(shape) : problem;
}

}  // namespace unisono::fuzz
