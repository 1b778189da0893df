// Members of ExpertExchangeOptions that must be equal on all ranks, as numbers in a fixed order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "unisono/parallel/experts.hpp"

namespace unisono::experts {

std::vector<std::int64_t> numbers_of(const ExpertExchangeOptions& options);

// First difference between the options of rank 0 and another rank, such as "has k = 1" and "has k =
// 2". Numbers beyond the end of the shorter list are ignored. REQUIRES: the options differ.
struct Difference {
  std::string first;
  std::string other;
};
Difference find_difference(std::span<const std::int64_t> first,
                           std::span<const std::int64_t> other);

}  // namespace unisono::experts
