#include "record/numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "cli/failure.h"

namespace unisono::cli {
namespace {

using nlohmann::ordered_json;

constexpr int kLeastRank = std::numeric_limits<int>::min();
constexpr int kMostRank = std::numeric_limits<int>::max();

// Checks the range first, because a cast of a double that does not fit is undefined.
std::optional<std::int64_t> whole_within(const ordered_json& value, std::int64_t least,
                                         std::int64_t most) {
  if (value.is_number_float()) {
    constexpr double kBeyond = 9223372036854775808.0;  // 2^63
    const double number = value.get<double>();
    if (!(number >= -kBeyond && number < kBeyond) || number != std::trunc(number)) {
      return std::nullopt;
    }
    const auto whole = static_cast<std::int64_t>(number);
    return whole >= least && whole <= most ? std::optional(whole) : std::nullopt;
  }
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
    return std::nullopt;
  }
  if (!value.is_number_integer()) {
    return std::nullopt;
  }
  const auto whole = value.get<std::int64_t>();
  return whole >= least && whole <= most ? std::optional(whole) : std::nullopt;
}

[[noreturn]] void refuse_number(const ordered_json& value, const std::string& place,
                                std::int64_t least, std::int64_t most) {
  refuse_recording(value.is_number() ? fmt::format("{} is not in {}..{}", place, least, most)
                                     : place + " is not a number");
}

}  // namespace

void refuse_recording(const std::string& what) {
  throw UsageError(fmt::format("the recording is not whole: {}", what),
                   "as in docs/formats/trace.md", "unisono run --record FILE makes one");
}

double number_of(const ordered_json& value, const std::string& place) {
  if (!value.is_number()) {
    refuse_recording(place + " is not a number");
  }
  return value.get<double>();
}

std::int64_t whole_of(const ordered_json& value, const std::string& place, std::int64_t least,
                      std::int64_t most) {
  const auto whole = whole_within(value, least, most);
  if (!whole) {
    refuse_number(value, place, least, most);
  }
  return *whole;
}

std::vector<int> ranks_of(const ordered_json& list, const std::string& place) {
  std::vector<int> ranks;
  for (const ordered_json& rank : list) {
    ranks.push_back(static_cast<int>(whole_of(rank, place, kLeastRank, kMostRank)));
  }
  return ranks;
}

int rank_at(const ordered_json& trace, const char* table, const char* column, std::size_t row) {
  return static_cast<int>(whole_at(trace, table, column, row, kLeastRank, kMostRank));
}

std::int64_t whole_at(const ordered_json& trace, const char* table, const char* column,
                      std::size_t row, std::int64_t least, std::int64_t most) {
  const ordered_json& value = trace.at(table).at(column).at(row);
  const auto whole = whole_within(value, least, most);
  if (!whole) {
    refuse_number(value, fmt::format("/{}/{}/{}", table, column, row), least, most);
  }
  return *whole;
}

}  // namespace unisono::cli
