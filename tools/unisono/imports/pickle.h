// Reads Python's pickles of plain data: None, bools, numbers, texts, lists, tuples and dicts. A
// pickle is a program; what would look up a name, call or build anything is refused, and nothing is
// run.
#pragma once

#include <string>
#include <string_view>

#include "imports/value_events.h"

namespace unisono::cli {

// Returns true if it begins like a pickle of protocol 2 or later.
bool is_pickle(std::string_view bytes);

// Tuples become arrays, and keys that are numbers texts. Returns why the pickle is refused, and at
// which byte; empty if the sink has received its value.
std::string read_pickle(std::string_view bytes, ValueSink& sink);

}  // namespace unisono::cli
