// A workload made ready to play: messages with their costs, in the order in which ports take them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/simulator/paths.h"
#include "model/simulator/simulation.h"
#include "model/simulator/workload.h"

namespace unisono::model {

// An actor is one stream of one rank.
struct PlayMessage {
  int from = 0;  // actors; from == to: local, through no port but that of reductions
  int to = 0;
  int path = 0;
  double overhead_us = 0;
  double latency_us = 0;  // of the links
  double bytes = 0;
  double reduce_us = 0;
};

// One step, repeated. Either `needs` says which earlier messages of the block each message needs,
// or the senders wait for all that they received before, or for nothing.
struct PlayBlock {
  int phase = 0;
  std::int64_t repeats = 1;
  bool waits = false;
  bool has_needs = false;
  std::vector<PlayMessage> messages = {};
  std::vector<std::uint32_t> first_need = {};  // per message, and one more
  std::vector<std::uint32_t> needs = {};

  std::span<const std::uint32_t> needs_of(std::size_t message) const {
    return std::span(needs).subspan(first_need[message],
                                    first_need[message + 1] - first_need[message]);
  }
};

struct PlayItem {
  std::vector<int> actors = {};
  std::vector<double> compute_us = {};  // per actor; empty for an operation
  double launch_us = 0;
  std::vector<int> after = {};  // items that have ended on all ranks before this one begins
  std::shared_ptr<const std::vector<PlayBlock>> blocks = {};  // shared by items that are alike
};

struct Play {
  std::vector<int> rank_of_actor = {};
  std::vector<double> late_us = {};  // of each actor
  std::vector<PlayItem> items = {};
  std::vector<bool> is_awaited = {};  // by item: another one comes after it
};

// Errors: Error(usage) for ranks that are not there.
Play make_play(const Workload& workload, const SimulationOptions& options, PathTable& paths);

// Whether a link may have to hold up messages: if all that could be under way over it at once, each
// at the speed that it has alone, is more than the link carries. REQUIRES: an actor for each rank.
bool may_share_links(const Play& play, const PathTable& paths, int ports);

// Throws Error(usage) for more messages than are to be played, and says how long that may take:
// those that share links take thirty times as long.
void check_limit(double messages, const SimulationOptions& options, bool shared);

// A factor from 1 to 1 + jitter, always the same for the same message.
double jitter_factor(const SimulationOptions& options, std::uint64_t item, std::uint64_t step,
                     std::uint64_t message);

}  // namespace unisono::model
