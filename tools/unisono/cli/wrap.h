// Wraps text, and formats counted words.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace unisono::cli {

// Wraps text to `width` columns, with `indent` spaces before each line and a line feed at the end.
std::string wrap(std::string_view text, int indent, int width);

// Returns `text` wrapped to `width` columns after `label`, which is on the first line only.
std::string labelled(std::string_view label, std::string_view text, int width);

// Returns a shell command, continued after a backslash and indented by four more columns.
std::string wrap_command(std::string_view command, int indent, int width);

// "1 call", "3 calls".
std::string times(std::size_t count, std::string_view what);

}  // namespace unisono::cli
