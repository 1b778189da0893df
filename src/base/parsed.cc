#include "base/parsed.h"

#include <algorithm>
#include <charconv>

namespace unisono {

std::string place_in(std::string_view text, std::string_view position) {
  constexpr std::string_view kLine = "line ";
  if (position.starts_with(kLine)) {
    return ":" + std::string(position.substr(kLine.size()));
  }
  constexpr std::string_view kByte = "byte ";
  std::size_t byte = 0;
  if (!position.starts_with(kByte) ||
      std::from_chars(position.data() + kByte.size(), position.data() + position.size(), byte).ec !=
          std::errc{}) {
    return " at " + std::string(position);
  }
  const std::string_view before = text.substr(0, byte);
  return ":" + std::to_string(1 + std::count(before.begin(), before.end(), '\n'));
}

}  // namespace unisono
