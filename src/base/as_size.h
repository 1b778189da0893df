// Converts ranks, rows and other counts to indices.
#pragma once

#include <cstddef>
#include <type_traits>

namespace unisono {

// REQUIRES: value is not negative. Discards a fraction.
template <typename Number>
  requires std::is_arithmetic_v<Number>
constexpr std::size_t as_size(Number value) {
  return static_cast<std::size_t>(value);
}

}  // namespace unisono
