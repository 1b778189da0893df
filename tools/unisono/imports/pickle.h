// Reads Python's pickles of plain data: None, bools, numbers, texts, lists, tuples and dicts. A
// pickle is a program; what would look up a name, call or build anything is refused, and nothing is
// run.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/parsed.h"

namespace unisono::cli {

// Returns true if it begins like a pickle of protocol 2 or later.
bool is_pickle(std::string_view bytes);

// Tuples become arrays, and keys that are numbers texts. The position is the byte.
Parsed<nlohmann::json> parse_pickle(std::string_view bytes);

}  // namespace unisono::cli
