#include "network_model/simulator/workload.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

// Estimates how many chunks all ranks send; the simulator has to follow each of them.
double chunks_sent(const Algorithm& algorithm, Shape shape) {
  // If one rank has all the data, the other ranks forward only what it has sent.
  const bool from_one =
      algorithm.collective == Collective::scatter || algorithm.collective == Collective::gather;
  const int senders = from_one ? std::min(algorithm.steps(shape), shape.ranks) : shape.ranks;
  return static_cast<double>(algorithm.chunks_sent(shape)) * senders;
}

// Returns true if the form to be played has too many messages.
bool is_too_large(const Algorithm& algorithm, Shape shape, bool written_out) {
  constexpr double kMostMessages = 2e7;
  constexpr double kMostChunks = 1e8;
  const bool is_short = algorithm.compact != nullptr && !written_out;
  // A short form lists one message per rank and kind of step; in an all_to_all, one per step.
  const bool is_listed = !is_short || algorithm.collective == Collective::all_to_all;
  const double messages = static_cast<double>(algorithm.steps(shape)) * shape.ranks;
  return (is_listed && messages > kMostMessages) ||
         (!is_short && chunks_sent(algorithm, shape) > kMostChunks);
}

// Lists algorithms of the same collective whose short form could be simulated.
std::string instead_of(const Algorithm& algorithm, const Shape& asked) {
  std::string names;
  for (const Algorithm* other : catalog()) {
    if (other == &algorithm || other->collective != algorithm.collective ||
        other->compact == nullptr) {
      continue;
    }
    const Shape shape = complete(*other, {.ranks = asked.ranks, .root = asked.root});
    if (can_serve(*other, shape) && !is_too_large(*other, shape, false)) {
      names += (names.empty() ? ", or another algorithm: " : ", ") + std::string(other->name);
    }
  }
  return names;
}

}  // namespace

WorkItem operation(const Algorithm& algorithm, Shape shape, double bytes, bool written_out) {
  shape = complete(algorithm, shape);
  const std::string name =
      std::string(to_string(algorithm.collective)) + "/" + full_name(algorithm, shape);
  if (!can_serve(algorithm, shape)) {
    throw Error(ErrorCode::usage, name + " does not support " + std::to_string(shape.ranks) +
                                      " ranks\nit supports only " + std::string(algorithm.limits));
  }
  if (is_too_large(algorithm, shape, written_out)) {
    throw Error(ErrorCode::usage, name + " on " + std::to_string(shape.ranks) +
                                      " ranks has too many messages to simulate\nuse fewer ranks" +
                                      (written_out ? "" : instead_of(algorithm, shape)));
  }
  WorkItem item{.name = name, .bytes = bytes};
  if (algorithm.compact != nullptr && !written_out) {
    item.compact = std::make_shared<const CompactSchedule>(algorithm.compact(shape));
    return item;
  }
  item.schedule = std::make_shared<const Schedule>(build_schedule(algorithm, shape));
  return item;
}

WorkItem exchange(Schedule schedule) {
  const CountTotals totals = totals_of(schedule.counts);
  WorkItem item{.name = std::string(to_string(called_form(schedule)))};
  if (!schedule.algorithm.empty()) {
    item.name += "/" + schedule.algorithm;
  }
  item.bytes = static_cast<double>(std::max(totals.most_sent, totals.most_received)) *
               static_cast<double>(schedule.counts.element_bytes);
  item.schedule = std::make_shared<const Schedule>(std::move(schedule));
  return item;
}

WorkItem transfers(const std::vector<Transfer>& messages) {
  WorkItem item{.name = "send"};
  std::unordered_map<int, int> places;
  const auto place_of = [&](int rank) {
    const auto [place, is_new] = places.try_emplace(rank, static_cast<int>(item.ranks.size()));
    if (is_new) {
      item.ranks.push_back(rank);
    }
    return place->second;
  };
  // A chunk is one byte of the longest message.
  CompactSchedule schedule{.collective = Collective::broadcast, .phases = {CompactPhase{}}};
  for (const Transfer& message : messages) {
    const int from = place_of(message.from);
    const auto chunks = static_cast<std::int64_t>(message.bytes);
    schedule.phases[0].messages.push_back(
        {.from = from, .to = place_of(message.to), .chunks = chunks});
    schedule.chunks = std::max(schedule.chunks, chunks);
  }
  schedule.ranks = static_cast<int>(item.ranks.size());
  item.bytes = static_cast<double>(schedule.chunks);
  item.compact = std::make_shared<const CompactSchedule>(std::move(schedule));
  return item;
}

}  // namespace unisono::network_model
