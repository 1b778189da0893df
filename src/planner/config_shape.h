// Reads the sizes of a model from a config.json.
#pragma once

#include <optional>
#include <string>

#include "planner/config_family.h"
#include "planner/config_keys.h"
#include "planner/shape.h"

namespace unisono::planner {

// `tied`: what the file around a text part says about the embedding; unset: nothing. Errors:
// JsonProblem.
ModelShape read_shape(ConfigKeys& keys, const ConfigFamily& family, std::string name,
                      std::optional<bool> tied);

}  // namespace unisono::planner
