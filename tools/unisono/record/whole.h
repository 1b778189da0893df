// Numbers of a recording, which may be damaged or made by hand: checked before they are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace unisono::cli {

// Throws UsageError: "the recording is not whole: ...".
[[noreturn]] void refuse_recording(const std::string& what);

// `place`: "/ops/rank/3", for the message.
double number_of(const nlohmann::ordered_json& value, const std::string& place);
std::int64_t whole_of(const nlohmann::ordered_json& value, const std::string& place,
                      std::int64_t least, std::int64_t most);

// Numbers of ranks, which need not be right ones.
std::vector<int> ranks_of(const nlohmann::ordered_json& list, const std::string& place);

// Of a column of a group of columns. Throws what nlohmann::json does, where there is none.
std::int64_t whole_at(const nlohmann::ordered_json& trace, const char* table, const char* column,
                      std::size_t row, std::int64_t least = 0,
                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
// The same, where no number is negative.
inline std::size_t count_at(const nlohmann::ordered_json& trace, const char* table,
                            const char* column, std::size_t row) {
  return static_cast<std::size_t>(whole_at(trace, table, column, row));
}
int rank_at(const nlohmann::ordered_json& trace, const char* table, const char* column,
            std::size_t row);

}  // namespace unisono::cli
