// Checks JSON text against limits before parsing, because a parser needs many times the memory of
// the text, and more if the text nests deeply.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace unisono {

struct JsonLimits {
  std::size_t depth = std::numeric_limits<std::size_t>::max();
  std::size_t string_bytes = std::numeric_limits<std::size_t>::max();  // counts escaped text
  std::size_t values = std::numeric_limits<std::size_t>::max();
  bool has_unique_keys = false;  // top-level keys; parsers would use the last of equal ones
};

struct JsonExcess {
  std::string message = {};  // empty: the text is within the limits
  std::size_t byte = 0;
  bool is_too_much = true;  // false: a key is repeated
};

// Looks only at brackets, commas and strings, so the text need not be valid JSON.
JsonExcess json_excess(std::string_view text, const JsonLimits& limits);

}  // namespace unisono
