// Elements of each rank before and after a reshard, as the proof and the bound derive them from the
// layouts.
#pragma once

#include <map>

#include "unisono/parallel/reshard.hpp"

namespace unisono::parallel {

struct ReshardSide {
  std::map<int, ElementRanges> elements = {};  // per rank
  std::map<int, std::size_t> summand = {};     // per rank
  std::size_t summands = 1;
};
struct ReshardSides {
  ReshardSide from = {};
  ReshardSide to = {};
};

ReshardSides sides_of(const ReshardTensor& tensor);

bool overlap(const ElementRanges& a, const ElementRanges& b);

}  // namespace unisono::parallel
