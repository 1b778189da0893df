// Ranks, rows and other counts as indices.
#pragma once

#include <cstddef>
#include <type_traits>

namespace unisono {

// REQUIRES: value is not negative; a fraction is cut off.
template <typename Number>
  requires std::is_arithmetic_v<Number>
constexpr std::size_t as_size(Number value) {
  return static_cast<std::size_t>(value);
}

}  // namespace unisono
