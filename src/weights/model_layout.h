// The layout of a whole model on ranks.
//
// The text names axes in any order, such as "tp=8,pp=4,dp=2 on 0-63". Ranks are assigned in the
// order in which training frameworks assign them, whatever the order of the text: pp varies
// slowest, then dp, fsdp, cp, and tp varies fastest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "unisono/parallel/reshard.hpp"

namespace unisono::weights {

struct ModelLayout {
  int tp = 1;                   // splits heads, inner widths and the vocabulary
  int pp = 1;                   // splits the layers into stages
  int dp = 1;                   // copies
  int fsdp = 1;                 // splits dimension 0 of each tp shard
  int cp = 1;                   // copies
  int ep = 1;                   // splits the experts over the ranks of a stage
  int etp = 1;                  // splits the inner widths of experts
  std::vector<int> ranks = {};  // empty: 0, 1, 2, ...

  // Throws Error(config), which describes the mistake in the text.
  static ModelLayout parse(std::string_view text);

  int copies() const { return dp * fsdp * cp; }
  int stage_ranks() const { return tp * copies(); }
  int rank_count() const { return pp * stage_ranks(); }
  int last_rank() const;
  // Returns the ranks of a stage, in order.
  std::vector<int> stage(int index) const;
  std::string text() const;  // "pp=4,dp=2,tp=8 on 0-63"
};

}  // namespace unisono::weights
