// Times as a unisono.trace/1 has them.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace unisono::cli {

// A whole number where it is one: "1372", not "1372.0".
inline nlohmann::ordered_json plain_number(double value) {
  constexpr double kMostExact = 9007199254740992;  // 2^53
  if (std::abs(value) < kMostExact && value == std::trunc(value)) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

// Microseconds, to the nanosecond.
inline nlohmann::ordered_json us_of_ns(double ns) {
  return plain_number(std::round(ns) / 1000);
}

}  // namespace unisono::cli
