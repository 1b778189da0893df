// The costs of a pipeline's stages and messages.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string>
#include <vector>

#include "cli/failure.h"
#include "pipelines/pipelines.h"
#include "topo/topo.h"
#include "topology/routes.h"

namespace unisono::cli {
namespace {

double time_of(const Arguments& arguments, std::string_view option) {
  const double time = ends_in_unit(arguments.text(option)) ? arguments.seconds(option) * 1e6
                                                           : arguments.real(option);
  constexpr double kMost = 1e12;
  if (!(time >= 0 && time <= kMost)) {
    throw UsageError(fmt::format("--{} must be a time of 0 or more", option));
  }
  return time;
}

// A microbatch takes the same time on each rank, for any number of stages per rank.
void set_times(pipeline::Pipeline& pipeline, const Arguments& arguments) {
  if (are_microseconds(arguments) && !arguments.has("forward")) {
    throw UsageError("the time of a microbatch is missing: here messages are timed in microseconds",
                     "give it, such as --forward 2ms");
  }
  const double forward = time_of(arguments, "forward");
  const auto as_forward = [&](std::string_view option) {
    return arguments.has(option) ? time_of(arguments, option) : forward;
  };
  const double input = as_forward("input");
  const double weight = as_forward("weight");
  const double transfer = time_of(arguments, "transfer");
  std::vector<double> stages_of_rank(static_cast<std::size_t>(pipeline.ranks), 0);
  for (const int rank : pipeline.stage_rank) {
    ++stages_of_rank[static_cast<std::size_t>(rank)];
  }
  // DualPipe's two stages are the same part of a model for different microbatches.
  const auto copies = static_cast<double>(pipeline.chains.size());
  for (std::size_t stage = 0; stage < pipeline.stage_rank.size(); ++stage) {
    const double share =
        copies / stages_of_rank[static_cast<std::size_t>(pipeline.stage_rank[stage])];
    pipeline.costs.forward[stage] = forward * share;
    pipeline.costs.input[stage] = input * share;
    pipeline.costs.weight[stage] = weight * share;
    pipeline.costs.transfer[stage] = transfer;
  }
}

// Reads "1,1.2,0.9": the relative durations of the stages.
void set_factors(pipeline::Pipeline& pipeline, const Arguments& arguments) {
  if (!arguments.has("factors")) {
    return;
  }
  std::vector<double> factors;
  std::istringstream list(arguments.text("factors"));
  for (std::string part; std::getline(list, part, ',');) {
    double factor = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), factor);
    constexpr double kMost = 1e6;
    if (error != std::errc{} || end != part.data() + part.size() || !(factor >= 0) ||
        factor > kMost) {
      throw UsageError(fmt::format("--factors: '{}' is not a factor of 0 or more", part));
    }
    factors.push_back(factor);
  }
  if (factors.size() != pipeline.stage_rank.size()) {
    throw UsageError(fmt::format("--factors has {} numbers, but there are {} stages",
                                 factors.size(), pipeline.stages()),
                     "give one per stage, such as 1,1.2,1,0.9");
  }
  for (std::size_t stage = 0; stage < factors.size(); ++stage) {
    pipeline.costs.forward[stage] *= factors[stage];
    pipeline.costs.input[stage] *= factors[stage];
    pipeline.costs.weight[stage] *= factors[stage];
  }
}

// Computes the time of each single message over the links of a topology; rank i is at the
// topology's rank i.
void set_links(pipeline::Pipeline& pipeline, const Arguments& arguments) {
  if (!arguments.has("on")) {
    if (arguments.has("message")) {
      throw UsageError("--message needs --on: the topology defines its time");
    }
    return;
  }
  if (arguments.has("transfer")) {
    throw UsageError("--on and --transfer both define the time of a message");
  }
  const Topology topology = load_topology(arguments.text("on"));
  if (topology.rank_count() < pipeline.ranks) {
    throw UsageError(fmt::format("{} ranks do not fit on the topology", pipeline.ranks),
                     fmt::format("it has {}", topology.rank_count()),
                     "unisono topo " + arguments.text("on"));
  }
  const auto bytes = static_cast<double>(arguments.bytes("message"));
  const pipeline::Neighbours around = neighbours(pipeline);
  Router router(topology);
  for (std::size_t stage = 0; stage < pipeline.stage_rank.size(); ++stage) {
    const int from = pipeline.stage_rank[stage];
    const int next = around.next[stage];
    const int to = next < 0 ? from : pipeline.stage_rank[static_cast<std::size_t>(next)];
    double time = from == to ? 0 : topology.overhead_us;
    double slowest = 0;
    for (const int link : router.route(from, to)) {
      const Link& on = topology.links[static_cast<std::size_t>(link)];
      time += on.latency_us;
      slowest = std::max(slowest, bytes / on.bytes_per_us);
    }
    pipeline.costs.transfer[stage] = time + slowest;
  }
}

void set_lanes(pipeline::Pipeline& pipeline, const Arguments& arguments) {
  pipeline.lanes = static_cast<int>(arguments.number("lanes", 1, 2));
  pipeline.capacity =
      static_cast<int>(arguments.number("capacity", 0, std::int64_t{pipeline::kMostActions}));
}

}  // namespace

void set_costs(pipeline::Pipeline& pipeline, const Arguments& arguments) {
  set_times(pipeline, arguments);
  set_lanes(pipeline, arguments);
}

void adjust_costs(pipeline::Pipeline& pipeline, const Arguments& arguments) {
  set_factors(pipeline, arguments);
  set_links(pipeline, arguments);
}

}  // namespace unisono::cli
