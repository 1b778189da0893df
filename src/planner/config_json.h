// Model shapes from `config.json` as Hugging Face publishes it.
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

// A problem's position is a JSON pointer. Where a model has other parts besides its text, the text
// is read and the account names the others; sizes outside it must not contradict it. An
// architecture with parts that are not described is refused, with these parts.
Parsed<ModelConfig> parse_config_json(std::string_view text, std::string name);

}  // namespace unisono::planner
