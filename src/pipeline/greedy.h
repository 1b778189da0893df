// Makes pipeline orders greedily: whenever a rank is free, it runs the action that a rule selects,
// as far as its memory allows.
#pragma once

#include <optional>
#include <vector>

#include "pipeline/orders.h"

namespace unisono::pipeline {

struct GreedyRule {
  // The most microbatches of a stage that a rank may hold between F and I: `ahead` for each rank
  // from here to the last one, plus `more`. Also limited by memory.
  double ahead = 1;
  int more = 0;
  // W is done if the rank would otherwise wait for at least this share of it.
  double fill = 0.5;
  bool forward_first = false;  // if both F and I could begin
};

// Returns nullopt if the rule leads to a dead end, in which no rank has the memory to continue.
std::optional<Orders> greedy_orders(const Tasks& tasks, double most_bytes, const GreedyRule& rule);

}  // namespace unisono::pipeline
