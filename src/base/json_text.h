// Formats parts of JSON documents.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace unisono {

// Returns `text` as a JSON string. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
// Returns the shortest text that parses to the same number.
std::string json_number(double value);

// Returns `"name": [a, b, c]`, with one value per row.
template <typename Rows, typename Value>
std::string json_column(std::string_view name, const Rows& rows, const Value& value) {
  std::string text = json_string(name) + ": [";
  const char* between = "";
  for (const auto& row : rows) {
    text += between;
    text += value(row);
    between = ", ";
  }
  return text + "]";
}

}  // namespace unisono
