// Makes pipeline orders greedily: whenever a rank is free, it runs the action that a rule selects,
// within its memory limit.
#pragma once

#include <optional>
#include <vector>

#include "pipeline/orders.h"

namespace unisono::pipeline {

struct GreedyRule {
  // Limits the microbatches of a stage that a rank holds between F and I: `ahead` for each rank
  // from here to the last one, plus `more`. The memory limit applies too.
  double ahead = 1;
  int more = 0;
  // Runs W if the rank would otherwise wait for at least this share of it.
  double fill = 0.5;
  bool forward_first = false;  // prefer F if both F and I could begin
};

// Returns nullopt at a dead end, in which no rank has the memory to continue.
std::optional<Orders> greedy_orders(const Tasks& tasks, double most_bytes, const GreedyRule& rule);

}  // namespace unisono::pipeline
