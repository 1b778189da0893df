// The members of ExpertExchangeOptions that must be the same on all ranks, as numbers in a fixed
// order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unisono/parallel/experts.hpp"

namespace unisono::experts {

std::vector<std::int64_t> numbers_of(const ExpertExchangeOptions& options);

// The first difference between the numbers of rank 0 and another rank: "has k = 1", "has k = 2".
// Numbers beyond the end of the shorter list are ignored. REQUIRES: they differ.
struct Difference {
  std::string first;
  std::string other;
};
Difference find_difference(std::span<const std::int64_t> first,
                           std::span<const std::int64_t> other);

}  // namespace unisono::experts
