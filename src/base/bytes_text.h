// Sizes as text: "64 MiB" out, "64M", "64MiB", "64 MiB", "1024", "1K" in (binary units).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unisono {

// "8 B", "64 KiB", "1.5 MiB": three digits, but whole numbers whole.
std::string format_bytes(std::uint64_t bytes);
std::string format_bytes(double bytes);
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace unisono
