#include "model/work.h"

#include <string>

#include "algorithms/catalog.h"
#include "model/bounds.h"
#include "unisono/error.hpp"

namespace unisono::model {
namespace {

constexpr int kLeastSwitchRanks = 4;

Work ring_work(Collective collective, int ranks) {
  const double others = ranks - 1;
  const double part = others / ranks;
  switch (collective) {
    case Collective::all_reduce:
      return {.messages = 2 * others, .share = 2 * part, .reduced = part};
    case Collective::broadcast:
      return {.messages = others, .share = 1};
    case Collective::reduce:
      return {.messages = others, .share = 1, .reduced = 1};
    case Collective::reduce_scatter:
      return {.messages = others, .share = part, .reduced = part};
    case Collective::barrier:
      return {.messages = 2 * others};
    default:
      return {.messages = others, .share = part};
  }
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
  if (ranks >= kLeastSwitchRanks) {
    const bool both_ways = plain == Collective::all_reduce || plain == Collective::barrier;
    const Bound bound = lower_bound(plain, ranks, 1);
    work.switch_messages = both_ways ? 2 : 1;
    work.switch_share = plain == Collective::all_reduce ? 1 : bound.bytes;
  }
  return work;
}

}  // namespace unisono::model
