// The engine under chaos: collectives run one after the other on a simulated network. A seed
// determines everything that a transport and the ranks may do in several ways, and one fault may be
// injected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "case.h"
#include "engine/simulated_ranks.h"
#include "transport/sim/network.h"

namespace unisono::testing {

struct ChaosTrial {
  std::vector<Case> cases = {};  // all of the same ranks
  sim::NetworkOptions network = {};
  engine::PollOrder order = engine::PollOrder::in_turn;
  std::uint64_t seed = 0;
};

ChaosTrial draw_chaos(std::uint64_t seed);
std::string to_text(const ChaosTrial& trial);

struct ChaosResult {
  std::string wrong;  // empty: the run is correct
  bool struck = false;
};

// Without a fault all ranks must finish with right results. With one:
//
//   stops              who has not finished waits, along a chain of ranks, for the one that stopped
//   signature          at least one rank fails, and names the sender of the damaged message
//   shorter, longer    so too, or ranks wait for what the lost part or the tail holds up
//
// and whatever does finish is right. No rank does what the seam forbids.
ChaosResult run_chaos(const ChaosTrial& trial);

}  // namespace unisono::testing
