// `unisono plan --on`: every algorithm, simulated on a topology.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/failure.h"
#include "model/plan.h"
#include "model/simulator/simulate.h"
#include "plan/plan.h"
#include "schedule/schedule.h"
#include "unisono/error.hpp"

namespace unisono::cli {
namespace {

// So many messages share links in about a minute.
constexpr double kMostMessages = 2e7;

struct Row {
  std::string name;
  double time_s = 0;
  double messages = 0;
};

struct Result {
  model::Call call;
  std::string network;
  std::vector<Row> rows = {};                                  // fastest first
  std::vector<std::pair<std::string, std::string>> left = {};  // name, why
};

// How many of the first `ranks` ranks are inside of one node; 0 where that is not the same for all.
int ranks_of_a_node(const Topology& topology, int ranks) {
  std::map<int, int> counts;
  for (int rank = 0; rank < ranks; ++rank) {
    int device = topology.ranks[static_cast<std::size_t>(rank)];
    while (device >= 0 &&
           topology.devices[static_cast<std::size_t>(device)].kind != DeviceKind::node) {
      device = topology.devices[static_cast<std::size_t>(device)].inside;
    }
    ++counts[device];
  }
  const int first = counts.begin()->second;
  const bool alike = std::all_of(counts.begin(), counts.end(),
                                 [first](const auto& count) { return count.second == first; });
  return alike && !counts.contains(-1) ? first : 0;
}

// As it is without parameters, with the nodes of the topology as its groups, and with more
// segments.
std::vector<Shape> shapes_of(const Algorithm& algorithm, const Topology& topology, int ranks) {
  std::vector<Shape> shapes = {complete(algorithm, {.ranks = ranks})};
  const AlgorithmParameters usual = shapes.front().parameters;
  const int local = ranks_of_a_node(topology, ranks);
  if (usual.local.front() > 0 && local > 1 && local < ranks) {
    shapes.front().parameters.local = {local};
  }
  for (const int segments : {4, 16, 64}) {
    if (usual.segments > 0 && usual.segments != segments) {
      shapes.push_back(shapes.front());
      shapes.back().parameters.segments = segments;
    }
  }
  return shapes;
}

void simulate_shape(const Algorithm& algorithm, const Shape& shape, const Topology& topology,
                    Result& result) {
  const std::string name = full_name(algorithm, shape);
  try {
    model::Workload workload{.ranks = shape.ranks};
    workload.items.push_back(model::operation(algorithm, shape, result.call.bytes));
    const model::SimulationResult simulated =
        model::simulate(workload, topology, {.rank_times = false, .most_messages = kMostMessages});
    constexpr double kSecondsPerUs = 1e-6;
    result.rows.push_back({.name = name,
                           .time_s = simulated.total_us * kSecondsPerUs,
                           .messages = simulated.messages});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::usage) {
      throw;
    }
    result.left.emplace_back(name, "too many messages to simulate");
  }
}

double busbw(const Result& result, const Row& row) {
  return row.time_s > 0
             ? result.call.bytes * model::bus_factor(result.call.collective, result.call.ranks) /
                   row.time_s
             : 0;
}

void print_text(const Result& result, const Console& console) {
  std::size_t width = std::string_view("algorithm").size();
  for (const Row& row : result.rows) {
    width = std::max(width, row.name.size());
  }
  fmt::print("{}  {} rank{}  {}   simulated on {}\n\n", to_string(result.call.collective),
             result.call.ranks, result.call.ranks == 1 ? "" : "s", size_text(result.call.bytes),
             result.network);
  fmt::print("{}\n",
             console.paint(Paint::strong, fmt::format("{:<{}}  {:>10}  {:>8}  {:>7}", "algorithm",
                                                      width, "messages", "time", "busbw")));
  for (const Row& row : result.rows) {
    fmt::print("{:<{}}  {:>10.0f}  {:>8}  {:>7.2f}{}\n", row.name, width, row.messages,
               time_text(row.time_s), busbw(result, row) * 1e-9,
               &row == &result.rows.front() ? console.paint(Paint::good, "  <- fastest") : "");
  }
  for (const auto& [name, why] : result.left) {
    fmt::print("not   {}: {}\n", name, why);
  }
}

void print_json(const Result& result) {
  nlohmann::ordered_json json;
  json["schema"] = "unisono.plan_on/1";
  json["collective"] = to_string(result.call.collective);
  json["ranks"] = result.call.ranks;
  json["bytes"] = static_cast<std::uint64_t>(result.call.bytes);
  json["topology"] = result.network;
  json["chosen"] = result.rows.empty() ? nlohmann::ordered_json(nullptr)
                                       : nlohmann::ordered_json(result.rows.front().name);
  json["candidates"] = nlohmann::json::array();
  for (const Row& row : result.rows) {
    json["candidates"].push_back({{"algorithm", row.name},
                                  {"messages", static_cast<std::uint64_t>(row.messages)},
                                  {"time_us", rounded(row.time_s * 1e6)},
                                  {"busbw_gb_per_s", rounded(busbw(result, row) * 1e-9)}});
  }
  json["unable"] = nlohmann::json::array();
  for (const auto& [name, why] : result.left) {
    json["unable"].push_back({{"algorithm", name}, {"why", why}});
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

void plan_on(const model::Call& call, const Topology& topology, const Console& console) {
  if (call.ranks > topology.rank_count()) {
    throw UsageError(fmt::format("{} ranks do not fit on the topology", call.ranks),
                     fmt::format("it has {}", topology.rank_count()), "unisono help plan");
  }
  Result result{.call = call, .network = topology.name.empty() ? "a topology" : topology.name};
  if (call.collective == Collective::barrier) {
    result.call.bytes = 0;
  }
  for (const Algorithm* algorithm : catalog()) {
    if (algorithm->collective != plain_form(call.collective) ||
        (is_v_form(call.collective) && !algorithm->allows_v)) {
      continue;
    }
    if (!can_serve(*algorithm, {.ranks = call.ranks})) {
      result.left.emplace_back(algorithm->name, std::string(algorithm->limits));
      continue;
    }
    std::set<std::string> names;
    for (const Shape& shape : shapes_of(*algorithm, topology, call.ranks)) {
      if (can_serve(*algorithm, shape) && names.insert(full_name(*algorithm, shape)).second) {
        console.progress(fmt::format("simulating {}", full_name(*algorithm, shape)));
        simulate_shape(*algorithm, shape, topology, result);
      }
    }
  }
  console.end_progress();
  std::stable_sort(result.rows.begin(), result.rows.end(),
                   [](const Row& a, const Row& b) { return a.time_s < b.time_s * (1 - 1e-12); });
  if (console.json()) {
    print_json(result);
  } else {
    print_text(result, console);
  }
}

}  // namespace unisono::cli
