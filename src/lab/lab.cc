// The C++ functions of libunisono_lab.
#include "unisono/lab.hpp"

#include <utility>

#include "base/parsed.h"
#include "network_model/plan_on.h"
#include "network_model/simulator/report.h"
#include "network_model/simulator/workload.h"
#include "planner/config_json.h"
#include "planner/device.h"
#include "planner/search.h"
#include "planner/stacks.h"
#include "step/json.h"
#include "step/problem.h"
#include "step/verify.h"
#include "topology/json.h"
#include "topology/presets.h"

namespace unisono::lab {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::usage, what + "\n" + next);
}

template <typename T>
T take(Parsed<T> parsed, std::string_view text, const std::string& name, const std::string& next) {
  if (!parsed) {
    refuse(name + place_in(text, parsed.position) + ": " + parsed.message, next);
  }
  return *std::move(parsed.value);
}

bool is_json(std::string_view text) {
  return text.find('{') != std::string_view::npos;
}

Topology read_topology(std::string_view text) {
  const std::string next =
      "give a preset of `unisono topo --presets`, or the text of " + std::string(kTopologyFormat);
  if (is_json(text)) {
    return take(parse_topology_json(text), text, "the topology", next);
  }
  auto made = make_preset(text);
  if (!made) {
    refuse("topology " + std::string(text) + ": " + made.position + ": " + made.message, next);
  }
  return *std::move(made.value);
}

planner::ModelShape read_model(std::string_view text) {
  if (auto known = planner::find_model(text)) {
    return *std::move(known);
  }
  if (is_json(text)) {
    return take(planner::parse_config_json(text, "config.json"), text, "config.json",
                "give the file as the model hub publishes it")
        .shape;
  }
  std::string names;
  for (const std::string_view name : planner::known_models()) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  refuse("model " + std::string(text) + " is not a known model",
         "there are: " + names + "; or give the text of a config.json");
}

planner::Cluster read_cluster(std::string_view text) {
  const Topology topology = read_topology(text);
  const auto device = planner::find_device(planner::device_of_preset(topology.name));
  if (!device) {
    refuse("topology " + topology.name + " does not say which device it has",
           "give a preset of a machine, such as dgx_h100");
  }
  return planner::cluster_of(topology, *device);
}

}  // namespace

std::vector<PredictedAlgorithm> predict(Collective collective, int ranks, double bytes,
                                        std::string_view topology) {
  const Topology on = read_topology(topology);
  if (ranks < 1 || ranks > on.rank_count()) {
    refuse("the topology has " + std::to_string(on.rank_count()) + " ranks, not " +
               std::to_string(ranks),
           "use 1 to that many ranks");
  }
  if (!(bytes >= 0 && bytes <= 1e18)) {
    refuse("bytes is not in 0..1e18", "give the size of the vector in bytes");
  }
  std::vector<PredictedAlgorithm> result;
  for (const network_model::OnTopology::Row& row :
       network_model::plan_on({.collective = collective, .ranks = ranks, .bytes = bytes}, on)
           .rows) {
    result.push_back({.algorithm = row.name, .time_us = row.time_s * 1e6});
  }
  return result;
}

std::string simulate(std::string_view workload, std::string_view topology) {
  const Topology on = read_topology(topology);
  const network_model::Workload played =
      take(network_model::parse_workload_json(workload), workload, "the workload",
           "docs/formats/workload.md describes it");
  return network_model::report_json(network_model::simulate(played, on), played, &on);
}

std::vector<PlannedLayout> plan_training(std::string_view model, std::string_view topology,
                                         double batch, double sequence) {
  if (!(batch >= 1) || !(sequence >= 1)) {
    refuse("batch and sequence must be 1 or more",
           "give the sequences per step and the tokens per sequence");
  }
  const planner::ModelShape shape = read_model(model);
  const planner::TrainingTask task{.batch = batch, .sequence = sequence};
  const planner::Cluster cluster = read_cluster(topology);
  const planner::Levels levels(planner::built_in_evidence(),
                               planner::default_stack(cluster.device.name, shape.has_experts()),
                               shape, task, cluster.device.name);
  std::vector<PlannedLayout> result;
  for (const planner::TrainingEstimate& one :
       planner::search_training(shape, task, cluster, {.levels = &levels}).best) {
    result.push_back({.layout = text_of(one.layout),
                      .step_s = one.step_s,
                      .tokens_per_s_device = one.tokens_per_s_device});
  }
  return result;
}

std::vector<std::string> check_step(std::string_view text) {
  const step::Step read =
      take(step::parse_step_json(text), text, "the step", "docs/formats/step.md describes it");
  if (std::string problem = problem_of(read); !problem.empty()) {
    return {std::move(problem)};
  }
  std::vector<std::string> result;
  for (const step::Finding& finding : verify(read)) {
    result.push_back(to_text(finding));
  }
  return result;
}

}  // namespace unisono::lab
