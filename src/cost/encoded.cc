#include "cost/encoded.h"

#include <algorithm>
#include <utility>

#include "algorithms/catalog.h"
#include "algorithms/two_shot_hosts.h"
#include "cost/shapes.h"
#include "schedule/roundings.h"

namespace unisono::cost {
namespace {

struct TooLong {
  const Algorithm* algorithm = nullptr;
  Shape shape = {};
  double messages = 0;
};

std::string title_of(const std::string& name, MoveCode code) {
  return name + "+" + std::string(to_string(code));
}

}  // namespace

EncodedAlgorithm encode_proved(const Schedule& plain, const std::string& name,
                               std::span<const int> hosts, MoveCode code) {
  EncodedAlgorithm result{.name = name, .title = title_of(name, code)};
  Schedule encoded = encode_moves(plain, hosts, code);
  const std::vector<RoundingFault> faults = check_roundings(encoded);
  if (faults.empty()) {
    result.schedule = std::make_shared<const Schedule>(std::move(encoded));
    return result;
  }
  const RoundingFault& first = faults.front();
  result.why_not =
      first.what + (first.step < 0 ? "" : " in step " + std::to_string(first.step + 1));
  return result;
}

std::vector<EncodedAlgorithm> encoded_algorithms(const EncodedCall& call,
                                                 std::span<const int> hosts, double most_messages) {
  const int ranks = static_cast<int>(hosts.size());
  std::vector<EncodedAlgorithm> result;
  std::vector<TooLong> too_long;
  if (call.collective == Collective::all_reduce) {
    result.push_back(
        encode_proved(algorithms::two_shot_between(hosts), "two_shot", hosts, call.code));
  }
  for (const Algorithm* algorithm : catalog()) {
    const Shape usual{.ranks = ranks, .root = call.root};
    if (algorithm->collective != call.collective || !can_serve(*algorithm, usual)) {
      continue;
    }
    for (const Shape& shape : shapes_on(hosts, *algorithm, usual)) {
      // An upper bound.
      const double messages = static_cast<double>(algorithm->chunks_sent(shape)) * ranks;
      if (messages <= most_messages) {
        result.push_back(encode_proved(build_schedule(*algorithm, shape),
                                       full_name(*algorithm, shape), hosts, call.code));
      } else {
        too_long.push_back({.algorithm = algorithm, .shape = shape, .messages = messages});
      }
    }
  }
  const auto has_one = [&] {
    return std::ranges::any_of(result,
                               [](const EncodedAlgorithm& one) { return one.schedule != nullptr; });
  };
  std::ranges::stable_sort(too_long, {}, &TooLong::messages);
  for (const TooLong& next : too_long) {
    const std::string name = full_name(*next.algorithm, next.shape);
    result.push_back(has_one() ? EncodedAlgorithm{.name = name,
                                                  .title = title_of(name, call.code),
                                                  .why_not = "too many messages to simulate"}
                               : encode_proved(build_schedule(*next.algorithm, next.shape), name,
                                               hosts, call.code));
  }
  return result;
}

}  // namespace unisono::cost
