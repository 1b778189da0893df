// Drives the executors of all ranks of a group on a simulated network, in one thread. A seed
// determines the order of polls, which may be unfair. For tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/execution.h"
#include "transport/sim/network.h"

namespace unisono::engine {

class Executor;

// The order in which the ranks are polled.
enum class PollOrder : std::uint8_t {
  in_turn,
  random,
  greedy,    // one until it must wait, then another
  starving,  // one rank only when all others must wait
};
inline constexpr int kOrders = 4;

enum class End : std::uint8_t { finished, failed, waits, stopped };

struct RankEnd {
  End end = End::waits;
  Fault fault = {};              // failed
  std::vector<Wait> waits = {};  // waits: the ranks and steps
};

// Polls until every rank has finished, failed or stopped, or until no rank can advance and nothing
// is in transit. `next` is called when a rank has finished; it starts the rank's next operation, or
// returns false if there is none. REQUIRES: every executor has been started on its rank's transport
// of the network.
using Next = std::function<bool(std::size_t rank)>;
std::vector<RankEnd> drive(
    sim::SimNetwork& network, const std::vector<Executor*>& executors, PollOrder order,
    std::uint64_t seed, const Next& next = [](std::size_t) { return false; });

// Describes the ranks that have not finished: "rank 2 waits for rank 0 at step 3; rank 0 has
// stopped".
std::string describe(const std::vector<RankEnd>& ends);

}  // namespace unisono::engine
