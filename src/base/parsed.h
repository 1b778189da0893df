// Result of a parser: a value, or an error with its position.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace unisono {

template <typename T>
struct Parsed {
  std::optional<T> value;
  std::string message;   // empty with a value
  std::string position;  // "byte 17", "line 2", or a JSON pointer such as "/moves/to/3"

  static Parsed success(T value) {
    return {.value = std::move(value), .message = {}, .position = {}};
  }
  static Parsed failure(std::string message, std::string position) {
    return {.value = std::nullopt, .message = std::move(message), .position = std::move(position)};
  }
  explicit operator bool() const { return value.has_value(); }
};

// Formats a position to follow a file name: "byte 17" becomes its line, ":2"; "line 2" becomes
// ":2"; a JSON pointer becomes " at /moves".
std::string place_in(std::string_view text, std::string_view position);

}  // namespace unisono
