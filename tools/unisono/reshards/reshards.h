// The parts of `unisono reshard`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "topology/topology.h"
#include "unisono/parallel/reshard.hpp"
#include "unisono/parallel/reshard_names.hpp"

namespace unisono::cli {

struct ReshardQuestion {
  std::string what = {};  // the model's name, or the tensor's shape
  std::string from = {};  // the layouts as text
  std::string to = {};
  std::vector<std::string> notes = {};  // lines about a config.json and what is left out
  std::optional<Topology> topology = {};
  parallel::ReshardPlan plan = {};
  std::vector<parallel::NamedTarget> targets = {};  // by --names; empty without it
  double planned_s = 0;
};

// Reads the operands and options, and plans. Throws UsageError.
ReshardQuestion read_reshard_question(const Arguments& arguments);

// Draws the two grids of one tensor within `width` columns: the ranks that hold each block before,
// and for each block after: rank<sender, or rank alone for its own memory. Empty: more than two
// dimensions are cut, or the grids are too wide.
std::string reshard_grids(const parallel::ReshardPlan& plan, std::size_t tensor, int width);

int show_reshard(const ReshardQuestion& question, const Arguments& arguments,
                 const Console& console);
int verify_reshard(const ReshardQuestion& question, const Console& console);
int simulate_reshard(const ReshardQuestion& question, const Console& console);

// The rank that sends most, and the least that it can be in any plan with the fewest bytes.
struct BusiestRank {
  std::size_t rank = 0;
  std::uint64_t sent = 0;
  std::uint64_t least = 0;
  std::string text() const;  // "rank 64, 16.5 GiB; at least 16.4 GiB: 1.00x"
};
BusiestRank busiest_rank(const parallel::ReshardPlan& plan, const parallel::ReshardBound& bound);

// "llama3-70b: 723 tensors, 131 GiB", and a line for each layout.
std::string reshard_heading(const ReshardQuestion& question, const Console& console);

}  // namespace unisono::cli
