// Reads model shapes from `config.json` as published by Hugging Face.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "planner/config_keys.h"
#include "planner/shape.h"

namespace unisono::planner {

struct ModelConfig {
  ModelShape shape = {};
  ConfigAccount account = {};
};

// The position of a problem is a JSON pointer. If a model has other parts besides its text, only
// the text is read, and the account lists the others; sizes outside the text part must not
// contradict it. An architecture with undescribed parts is refused, and the error lists these
// parts.
Parsed<ModelConfig> parse_config_json(std::string_view text, std::string name);

}  // namespace unisono::planner
