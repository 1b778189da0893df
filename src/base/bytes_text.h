// Sizes as text: "64MiB" out, "64M", "64MiB", "1024", "1K" in (binary units).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace unisono {

std::string format_bytes(std::uint64_t bytes);  // "8B", "64KiB", "1.5MiB"
std::optional<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace unisono
