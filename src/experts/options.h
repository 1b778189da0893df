// ExchangeOptions that must be the same on all ranks, as numbers in one order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unisono/parallel/experts.hpp"

namespace unisono::experts {

std::vector<std::int64_t> numbers_of(const ExchangeOptions& options);

// What rank 0 and another rank have where their numbers differ first: "has k = 1", "has k = 2".
// REQUIRES: they differ. What is behind the numbers of the shorter one does not count.
struct Difference {
  std::string first;
  std::string other;
};
Difference find_difference(std::span<const std::int64_t> first,
                           std::span<const std::int64_t> other);

}  // namespace unisono::experts
