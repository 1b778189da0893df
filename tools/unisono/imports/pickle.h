// Reads Python's pickles of plain data: None, bools, numbers, texts, lists, tuples and dicts. A
// pickle is a program: opcodes that would look up a name, call a function or create an object are
// refused, and nothing is run.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/parsed.h"

namespace unisono::cli {

// Returns true if it begins like a pickle of protocol 2 or later.
bool is_pickle(std::string_view bytes);

// Converts tuples to arrays, and numeric keys to texts. The position of an error is a byte.
Parsed<nlohmann::json> parse_pickle(std::string_view bytes);

}  // namespace unisono::cli
