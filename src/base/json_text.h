// Parts of JSON documents as text, for what writes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace unisono {

// `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);
// The shortest form that reads back as the same number.
std::string json_number(double value);

// `"name": [a, b, c]`, of one value a row.
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
