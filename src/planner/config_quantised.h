// Reads the bytes per weight from the "quantization_config" of a config.json.
#pragma once

#include <optional>

#include "base/json.h"
#include "planner/config_keys.h"
#include "planner/shape.h"

namespace unisono::planner {

// Unset, and named in the account, for a method that is not known. Errors: JsonProblem, for numbers
// of bits or groups that cannot be.
std::optional<StoredWeights> read_quantised(const JsonNode& config, const ModelShape& shape,
                                            ConfigAccount& account);

}  // namespace unisono::planner
