#include "cost/work.h"

#include <string>

#include "algorithms/catalog.h"
#include "cost/bounds.h"
#include "unisono/error.hpp"

namespace unisono::cost {
namespace {

constexpr int kLeastSwitchRanks = 4;

Work ring_work(Collective collective, int ranks) {
  const double others = ranks - 1;
  const double part = others / ranks;
  const double ways = goes_both_ways(collective) ? 2 : 1;
  const bool one_chain = !goes_both_ways(collective) && cut_of(collective) == VectorCut::none;
  return {.messages = ways * others,
          .share = moves_data(collective) ? bus_factor(collective, ranks) : 0,
          .reduced = !reduces(collective) ? 0
                     : one_chain          ? 1
                                          : part};
}

Work algorithm_work(const Algorithm& algorithm, const Shape& shape) {
  return {.messages = algorithm.cost(shape, {.alpha = 1}),
          .share = algorithm.cost(shape, {.beta = 1}),
          .reduced = algorithm.cost(shape, {.gamma = 1})};
}

}  // namespace

Work work_of(Collective collective, std::string_view algorithm, int ranks) {
  const Collective plain = plain_form(collective);
  Work work;
  if (algorithm.empty()) {
    work = ranks > 1 ? ring_work(plain, ranks) : Work{};
  } else {
    const Algorithm* found = find_algorithm(collective, algorithm);
    Shape shape{.ranks = ranks};
    if (found != nullptr) {
      shape.parameters = parse_parameters(*found, algorithm);
    }
    if (found == nullptr || !can_serve(*found, shape)) {
      throw Error(ErrorCode::usage, std::string(to_string(collective)) + "/" +
                                        std::string(algorithm) + " does not serve " +
                                        std::to_string(ranks) +
                                        " ranks\n`unisono list` has all algorithms");
    }
    work = algorithm_work(*found, complete(*found, shape));
  }
  if (ranks >= kLeastSwitchRanks && !is_scan(plain)) {
    const Bound bound = lower_bound(plain, ranks, 1);
    work.switch_messages = goes_both_ways(plain) ? 2 : 1;
    work.switch_share = goes_both_ways(plain) && moves_data(plain) ? 1 : bound.bytes;
  }
  return work;
}

}  // namespace unisono::cost
