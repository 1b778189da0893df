#include "base/bytes_text.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace unisono {
namespace {

// Two 64-bit words, so that an overflow shows after the multiplication.
__extension__ using Wide = unsigned __int128;

constexpr std::string_view kUnits = "BKMGTPE";

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Returns the binary shift for "", "B", "K", "KB", "KiB", ... 1 K is always 1024.
std::optional<int> unit_shift(std::string_view unit) {
  if (unit.empty()) {
    return 0;
  }
  const auto index = kUnits.find(upper(unit.front()));
  if (index == std::string_view::npos) {
    return std::nullopt;
  }
  std::string rest;
  for (const char c : unit.substr(1)) {
    rest += upper(c);
  }
  const bool plain = rest.empty();
  const bool with_b = index > 0 && (rest == "B" || rest == "IB");
  return plain || with_b ? std::optional<int>(static_cast<int>(index) * 10) : std::nullopt;
}

}  // namespace

std::string format_bytes(double bytes) {
  constexpr std::array<const char*, 7> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  double value = bytes;
  // If a value would round to 1024, use the next larger unit.
  while (unit + 1 < kNames.size() && std::round(value) >= 1024) {
    value /= 1024;
    ++unit;
  }
  const bool is_whole = unit == 0 || value == std::round(value);
  const int decimals = is_whole || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::array<char, 400> text;  // the longest double has 309 digits
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  std::string number = text.data();
  if (decimals != 0) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') {
      number.pop_back();
    }
  }
  return number + ' ' + kNames[unit];
}

std::string format_bytes(std::uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  // Computes value / 10^decimals exactly, then multiplies by the unit.
  Wide value = 0;
  Wide divisor = 1;
  std::size_t at = 0;
  bool point = false;
  bool digits = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    digits = true;
    value = value * 10 + static_cast<unsigned>(text[at] - '0');
    divisor *= point ? 10U : 1U;
    if (value > std::numeric_limits<std::uint64_t>::max() || divisor > 1'000'000'000) {
      return std::nullopt;
    }
  }
  const bool ends_in_point = at != 0 && text[at - 1] == '.';
  if (at + 1 < text.size() && text[at] == ' ') {
    ++at;  // "64 MiB"
  }
  const auto shift = unit_shift(text.substr(at));
  if (!digits || !shift || (point && (*shift == 0 || ends_in_point))) {
    return std::nullopt;
  }
  value <<= *shift;
  if (value % divisor != 0 || value / divisor > std::numeric_limits<std::uint64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(value / divisor);
}

}  // namespace unisono
