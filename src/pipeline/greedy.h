// Orders of a pipeline that are made on the fly: each rank does, whenever it is free, what a rule
// says, as far as its memory lasts.
#pragma once

#include <optional>
#include <vector>

#include "pipeline/orders.h"

namespace unisono::pipeline {

struct GreedyRule {
  // Microbatches of a stage between F and I that a rank may hold at most: `ahead` for each rank
  // from here to the last one, and `more`. Bounded by memory as well.
  double ahead = 1;
  int more = 0;
  // W is done where the rank would wait for at least this share of it.
  double fill = 0.5;
  bool forward_first = false;  // where both F and I could begin
};

// nullopt: the rule leads into a dead end, where no rank has the memory to go on.
std::optional<Orders> greedy_orders(const Tasks& tasks, double most_bytes, const GreedyRule& rule);

}  // namespace unisono::pipeline
