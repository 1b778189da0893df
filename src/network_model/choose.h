// Derives the choices of a tuned machine (cost/choices.h) from its measurements.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "cost/choices.h"
#include "cost/machine.h"
#include "unisono/types.hpp"

namespace unisono::network_model {

// Returns the algorithm that runs by default.
using DefaultAlgorithm = std::function<std::string_view(Collective, int ranks, double bytes)>;

// A faster algorithm replaces another one if it is faster by this factor.
inline constexpr double kWorthChanging = 1.05;
inline constexpr double kBeyond = 4;

// Returns the algorithms that the machine predicts to be fastest, for each measured collective and
// rank count, within the measured sizes. The built-in default stays chosen unless another algorithm
// is faster by kWorthChanging and by more than the noise at that rank count. Where the default does
// not stay, the choice of the next smaller size stays under the same condition. Beyond kBeyond
// times the largest measured size, the built-in choice applies again.
std::vector<cost::Choice> choose_algorithms(const cost::Machine& machine,
                                            const DefaultAlgorithm& default_algorithm);

// A call timed with a waiting policy.
struct TimedWait {
  cost::WaitChoice wait = {};
  double bytes = 0;
  double time_s = 0;
};
// Returns the policy with the shortest times for each rank count; all sizes have equal weight. The
// built-in policy stays unless another policy is faster by kWorthChanging and by more than the
// noise. If a size has several times, the shortest time counts.
std::vector<cost::WaitChoice> choose_waits(std::span<const TimedWait> timed);

// A call timed with this many threads per rank.
struct TimedThreads {
  cost::ThreadChoice of = {};  // from_bytes: the timed size
  double time_s = 0;
};
// Returns a number of threads for each collective, rank count and size. A size keeps the number of
// the next smaller size unless another number is faster by kWorthChanging and by more than the
// noise. In that case the size gets the smallest number that is almost as fast as the fastest one.
// The smallest size starts from the smallest number. If a call has several times, the shortest time
// counts.
std::vector<cost::ThreadChoice> choose_threads(std::span<const TimedThreads> timed);

}  // namespace unisono::network_model
