// Drives the executors of all ranks of a group on a simulated network, in one thread: who is polled
// next follows from a seed, and may be unfair. For tests.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/execution.h"
#include "transport/sim/network.h"

namespace unisono::engine {

class Executor;

// In which order the ranks are polled.
enum class PollOrder : std::uint8_t {
  in_turn,
  random,
  greedy,    // one until it has to wait, then another
  starving,  // one rank only where all others have to wait
};
inline constexpr int kOrders = 4;

enum class End : std::uint8_t { finished, failed, waits, stopped };

struct RankEnd {
  End end = End::waits;
  Fault fault = {};              // failed
  std::vector<Wait> waits = {};  // waits: for whom, at which step
};

// Polls until every rank has finished, failed or stopped, or nobody can go on and nothing is under
// way. `next` is called when a rank has finished: it starts the rank's next operation, or says that
// there is none. REQUIRES: every executor has been started, on the network's transport of its rank.
using Next = std::function<bool(std::size_t rank)>;
std::vector<RankEnd> drive(
    sim::SimNetwork& network, const std::vector<Executor*>& executors, PollOrder order,
    std::uint64_t seed, const Next& next = [](std::size_t) { return false; });

// "rank 2 waits for rank 0 at step 3; rank 0 has stopped": those that have not finished.
std::string describe(const std::vector<RankEnd>& ends);

}  // namespace unisono::engine
