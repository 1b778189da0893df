// Formats and parses sizes in binary units. Prints "64 MiB"; reads "64M", "64MiB", "64 MiB", "1024"
// and "1K".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unisono {

// Returns "8 B", "64 KiB" or "1.5 MiB": three significant digits, but all digits of a whole number.
std::string format_bytes(std::uint64_t bytes);
std::string format_bytes(double bytes);
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace unisono
