#include "base/bytes_text.h"

#include <array>
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

// "", "B", "K", "KB", "KiB", ...: the shift of the unit. 1 K is always 1024.
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

std::string format_bytes(std::uint64_t bytes) {
  int unit = 0;
  while (unit < 6 && (bytes >> (10 * (unit + 1))) != 0) {
    ++unit;
  }
  // Hundredths of the unit, rounded; only the remainder is scaled, so that nothing overflows.
  std::uint64_t hundredths = 0;
  for (;; ++unit) {
    const int shift = 10 * unit;
    const std::uint64_t one = std::uint64_t{1} << shift;
    const std::uint64_t rest = bytes & (one - 1);
    const std::uint64_t fraction =
        shift >= 10 ? ((rest >> (shift - 10)) * 100 + 512) / 1024 : std::uint64_t{0};
    hundredths = (bytes >> shift) * 100 + fraction;
    if (hundredths < 102'400 || unit == 6) {
      break;
    }
  }
  std::string text = std::to_string(hundredths / 100);
  if (const std::uint64_t fraction = hundredths % 100; fraction != 0) {
    text += '.';
    text += static_cast<char>('0' + fraction / 10);
    if (fraction % 10 != 0) {
      text += static_cast<char>('0' + fraction % 10);
    }
  }
  constexpr std::array<std::string_view, 7> kNames = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  return text.append(kNames.at(static_cast<std::size_t>(unit)));
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  // value / 10^decimals, exactly, then times the unit.
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
  const auto shift = unit_shift(text.substr(at));
  if (!digits || !shift || (point && (*shift == 0 || text[at - 1] == '.'))) {
    return std::nullopt;
  }
  value <<= *shift;
  if (value % divisor != 0 || value / divisor > std::numeric_limits<std::uint64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(value / divisor);
}

}  // namespace unisono
