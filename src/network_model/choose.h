// From the measurements of a tuned machine to its choices (cost/choices.h).
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "cost/choices.h"
#include "cost/machine.h"
#include "unisono/types.hpp"

namespace unisono::network_model {

// The algorithm that runs by default.
using DefaultAlgorithm = std::function<std::string_view(Collective, int ranks, double bytes)>;

// The factor from which a faster algorithm replaces another.
inline constexpr double kWorthChanging = 1.05;
inline constexpr double kBeyond = 4;

// The fastest of the measured algorithms, as the machine predicts them, for each collective and
// rank count that was measured, where they were measured; but the built-in default, or else the
// choice of the size below, stays unless another one is kWorthChanging faster, and by more than the
// noise of so many ranks. Beyond kBeyond times the largest measured size the built-in choice comes
// back.
std::vector<cost::Choice> choose_algorithms(const cost::Machine& machine,
                                            const DefaultAlgorithm& default_algorithm);

// A call that was timed with a policy.
struct TimedWait {
  cost::WaitChoice wait = {};
  double bytes = 0;
  double time_s = 0;
};
// For each rank count the policy with the shortest times, all sizes counting alike; but the
// built-in one stays unless another one is kWorthChanging faster, and by more than the noise. Of
// several times of one size the quickest counts.
std::vector<cost::WaitChoice> choose_waits(std::span<const TimedWait> timed);

// A call of ranks with so many threads each that was timed.
struct TimedThreads {
  cost::ThreadChoice of = {};  // from_bytes: the size that was timed
  double time_s = 0;
};
// For each collective and rank count, by size, the fewest threads that are hardly slower than the
// quickest; but those of the size below stay (the fewest at first) unless others are kWorthChanging
// faster, and by more than the noise. The quickest of several times of one call counts.
std::vector<cost::ThreadChoice> choose_threads(std::span<const TimedThreads> timed);

}  // namespace unisono::network_model
