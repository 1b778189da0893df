#include "experts/options.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace unisono::experts {
namespace {

constexpr std::array<const char*, 7> kFields = {"experts",  "k",          "layout",   "alignment",
                                                "capacity", "max_tokens", "row_bytes"};
constexpr std::size_t kLayout = 2;

std::string layout_text(std::int64_t layout) {
  switch (static_cast<ExpertLayout>(layout)) {
    case ExpertLayout::expert_major:
      return "expert_major";
    case ExpertLayout::rank_major:
      return "rank_major";
    case ExpertLayout::flat:
      break;
  }
  return "flat";
}

// Describes the option at `index`.
std::string says(std::span<const std::int64_t> numbers, std::size_t index) {
  const std::int64_t value = numbers[index];
  if (index < kFields.size()) {
    return std::string("has ") + kFields[index] + " = " +
           (index == kLayout ? layout_text(value) : std::to_string(value));
  }
  if (index == kFields.size()) {
    return "has experts_of_rank of length " + std::to_string(value);
  }
  std::size_t count = kFields.size() + 1;  // index of the ranks' experts, which follow
  int rank = 0;
  for (; index > count + static_cast<std::size_t>(numbers[count]); ++rank) {
    count += static_cast<std::size_t>(numbers[count]) + 1;
  }
  const std::string place = "experts_of_rank[" + std::to_string(rank) + "]";
  return index == count ? "has " + place + " of length " + std::to_string(value)
                        : "has " + place + "[" + std::to_string(index - count - 1) +
                              "] = " + std::to_string(value);
}

}  // namespace

std::vector<std::int64_t> numbers_of(const ExpertExchangeOptions& options) {
  std::vector<std::int64_t> numbers = {options.experts,
                                       options.k,
                                       static_cast<std::int64_t>(options.layout),
                                       options.alignment,
                                       options.capacity,
                                       static_cast<std::int64_t>(options.max_tokens),
                                       static_cast<std::int64_t>(options.row_bytes),
                                       static_cast<std::int64_t>(options.experts_of_rank.size())};
  for (const std::vector<int>& rank : options.experts_of_rank) {
    numbers.push_back(static_cast<std::int64_t>(rank.size()));
    numbers.insert(numbers.end(), rank.begin(), rank.end());
  }
  return numbers;
}

Difference find_difference(std::span<const std::int64_t> first,
                           std::span<const std::int64_t> other) {
  const auto at = static_cast<std::size_t>(
      std::mismatch(first.begin(), first.end(), other.begin(), other.end()).first - first.begin());
  return {.first = says(first, at), .other = says(other, at)};
}

}  // namespace unisono::experts
