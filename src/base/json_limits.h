// Limits for JSON text, checked before parsing: a parser takes many times the memory of the text,
// and more if the text nests deeply.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace unisono {

struct JsonLimits {
  std::size_t depth = std::numeric_limits<std::size_t>::max();
  std::size_t string_bytes = std::numeric_limits<std::size_t>::max();  // as they are written
  std::size_t values = std::numeric_limits<std::size_t>::max();
  bool has_unique_keys = false;  // of the document itself; parsers take the last of equal ones
};

struct JsonExcess {
  std::string message = {};  // empty: the text is within the limits
  std::size_t byte = 0;
  bool is_too_much = true;  // false: a key comes twice
};

// Reads brackets and quotes alone, so the text need not be valid.
JsonExcess json_excess(std::string_view text, const JsonLimits& limits);

}  // namespace unisono
