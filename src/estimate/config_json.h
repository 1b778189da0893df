// Model shapes from `config.json` as Hugging Face publishes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "estimate/shape.h"

namespace unisono::estimate {

// The values of "model_type" that are understood.
std::vector<std::string_view> known_architectures();

// A problem's position is a JSON pointer. Keys that have no part in what is estimated are passed
// over.
Parsed<ModelShape> parse_config_json(std::string_view text, std::string name);

}  // namespace unisono::estimate
