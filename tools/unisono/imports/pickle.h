// Reads Python's pickles of plain data: None, bools, numbers, texts, lists, tuples and dicts. A
// pickle is a program: opcodes that would look up a name, call a function or create an object are
// refused, and nothing is run.
#pragma once

#include <string>
#include <string_view>

#include "imports/value_events.h"

namespace unisono::cli {

// Returns true if it begins like a pickle of protocol 2 or later.
bool is_pickle(std::string_view bytes);

// Sends the value of a pickle to a sink: tuples as arrays, and numeric keys as texts. Returns the
// reason and the byte at which the pickle is refused; empty if the sink has received its value.
std::string read_pickle(std::string_view bytes, ValueSink& sink);

}  // namespace unisono::cli
