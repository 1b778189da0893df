// Reads the bytes per weight from the "quantization_config" of a config.json.
#pragma once

#include <optional>

#include "base/json.h"
#include "planner/config_keys.h"
#include "planner/shape.h"

namespace unisono::planner {

// Unset for an unknown method, which the account then names. Errors: JsonProblem for impossible
// numbers of bits or group sizes.
std::optional<StoredWeights> read_quantised(const JsonNode& config, const ModelShape& shape,
                                            ConfigAccount& account);

}  // namespace unisono::planner
