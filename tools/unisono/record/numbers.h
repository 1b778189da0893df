// Numbers of a unisono.trace/1: writes them, and reads and checks them, because a recording may be
// damaged or made by hand.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace unisono::cli {

// Writes whole numbers as such: "1372", not "1372.0".
inline nlohmann::ordered_json plain_number(double value) {
  constexpr double kMostExact = 9007199254740992;  // 2^53
  if (std::abs(value) < kMostExact && value == std::trunc(value)) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

// Converts to microseconds, rounded to a nanosecond.
inline nlohmann::ordered_json us_of_ns(double ns) {
  return plain_number(std::round(ns) / 1000);
}

// Throws UsageError: "the recording is not whole: ...".
[[noreturn]] void refuse_recording(const std::string& what);

// `place`: "/ops/rank/3", for the message.
double number_of(const nlohmann::ordered_json& value, const std::string& place);
std::int64_t whole_of(const nlohmann::ordered_json& value, const std::string& place,
                      std::int64_t least, std::int64_t most);

// Returns numbers of ranks, which may be invalid.
std::vector<int> ranks_of(const nlohmann::ordered_json& list, const std::string& place);

// Returns a value in a column of a group of columns. Throws an exception of nlohmann::json if there
// is none.
std::int64_t whole_at(const nlohmann::ordered_json& trace, const char* table, const char* column,
                      std::size_t row, std::int64_t least = 0,
                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
// Like whole_at(), for numbers that are not negative.
inline std::size_t count_at(const nlohmann::ordered_json& trace, const char* table,
                            const char* column, std::size_t row) {
  return static_cast<std::size_t>(whole_at(trace, table, column, row));
}
int rank_at(const nlohmann::ordered_json& trace, const char* table, const char* column,
            std::size_t row);

}  // namespace unisono::cli
