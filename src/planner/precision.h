// The precision of matrix products.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace unisono::planner {

// Sums are always in f32.
enum class Precision : std::uint8_t { bf16, f8, f4 };

std::string_view to_string(Precision precision);  // "bf16"
std::optional<Precision> parse_precision(std::string_view text);
double weight_bytes(Precision precision);  // per weight, including scales

}  // namespace unisono::planner
