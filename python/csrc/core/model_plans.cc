#include "model_plans.h"

#include <pybind11/stl.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/parsed.h"
#include "planner/config_json.h"
#include "planner/parts.h"
#include "planner/search.h"
#include "planner/stacks.h"
#include "topology/topology.h"

namespace unisono_python {
namespace {

using py::arg;
using unisono::Topology;
namespace planner = unisono::planner;

template <typename Parts>
py::dict parts_dict(std::span<const planner::NamedPart<Parts>> names, const Parts& parts) {
  py::dict result;
  for (const auto& part : names) {
    result[py::str(std::string(part.name))] = parts.*part.value;
  }
  return result;
}

// Returns the shape for a model name or for the text of a config.json.
planner::ModelShape shape_of(const std::string& model) {
  if (const auto known = planner::find_model(model)) {
    return *known;
  }
  if (model.find('{') == std::string::npos) {
    std::string names;
    for (const std::string_view name : planner::known_models()) {
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
    throw py::value_error("'" + model + "' is not a known model; known are " + names);
  }
  const auto parsed = planner::parse_config_json(model, "config.json");
  if (!parsed) {
    throw py::value_error("config.json" + unisono::place_in(model, parsed.position) + ": " +
                          parsed.message);
  }
  return parsed.value->shape;
}

planner::Cluster cluster_of(const Topology& topology, std::string device) {
  if (device.empty()) {
    device = planner::device_of_preset(topology.name);
  }
  const auto found = planner::find_device(device);
  if (!found) {
    throw py::value_error(
        device.empty()
            ? "the topology does not say which device it has; pass device, such as device='h100'"
            : "there is no device '" + device + "'");
  }
  return planner::cluster_of(topology, *found);
}

planner::Precision precision_of(const std::string& text) {
  const auto precision = planner::parse_precision(text);
  if (!precision) {
    throw py::value_error("precision must be 'bf16', 'f8' or 'f4', not '" + text + "'");
  }
  return *precision;
}

template <typename Estimate>
py::dict ranking_dict(const planner::Ranking<Estimate>& ranking, py::list layouts) {
  py::dict refused;
  for (const planner::Refusal& refusal : ranking.refused) {
    refused[py::str(refusal.why)] = refusal.layouts;
  }
  py::dict result;
  result["layouts"] = layouts;
  result["tried"] = ranking.tried;
  result["fitting"] = ranking.fitting;
  result["refused"] = refused;
  result["least_missing_bytes"] = ranking.least_missing_bytes;
  result["reason"] =
      ranking.best.size() > 1 ? planner::reason(ranking.best[0], ranking.best[1]) : "";
  return result;
}

void refuse(const std::string& problem) {
  if (!problem.empty()) {
    throw py::value_error("layout: " + problem);
  }
}

py::dict plan_training(const std::string& model, const std::shared_ptr<Topology>& on, double batch,
                       double sequence, const std::string& precision, const std::string& layout,
                       const std::string& device, std::size_t top) {
  if (!(batch >= 1) || !(sequence >= 1) || top < 1) {
    throw py::value_error("batch, sequence and top must be 1 or more");
  }
  const planner::ModelShape shape = shape_of(model);
  const planner::TrainingTask task{
      .batch = batch, .sequence = sequence, .precision = precision_of(precision)};
  const planner::Cluster cluster = cluster_of(*on, device);
  const planner::Levels levels(planner::built_in_evidence(),
                               planner::default_stack(cluster.device.name, shape.has_experts()),
                               shape, task, cluster.device.name);
  planner::Ranking<planner::TrainingEstimate> ranking;
  if (layout.empty()) {
    const py::gil_scoped_release unlocked;
    ranking = search_training(shape, task, cluster, {.most = top, .levels = &levels});
  } else {
    const planner::Layout one = planner::parse_layout(layout, cluster.devices);
    refuse(problem_of(shape, one, task));
    const auto estimate = at_level(estimate_training(shape, one, task, cluster), levels);
    ranking.tried = 1;
    if (const double missing = estimate.memory.total() - cluster.usable_bytes(); missing > 0) {
      ranking.least_missing_bytes = missing;
      ranking.refused = {{.why = "memory", .layouts = 1}};
    } else {
      ranking.best = {estimate};
      ranking.fitting = 1;
    }
  }
  py::list layouts;
  for (const planner::TrainingEstimate& one : ranking.best) {
    py::dict row;
    row["tp"] = one.layout.tp;
    row["pp"] = one.layout.pp;
    row["vp"] = one.layout.vp;
    row["cp"] = one.layout.cp;
    row["uly"] = one.layout.uly;
    row["ep"] = one.layout.ep;
    row["dp"] = one.layout.dp;
    row["micro_batch"] = one.layout.micro_batch;
    row["zero"] = one.layout.zero;
    row["recompute"] = std::string(to_string(one.layout.recompute));
    row["step_s"] = one.step_s;
    row["low_s"] = one.low_s;
    row["high_s"] = one.high_s;
    row["tokens_per_s_device"] = one.tokens_per_s_device;
    row["utilisation"] = one.utilisation;
    row["seconds"] = parts_dict(planner::step_parts(), one.parts);
    row["bytes"] = parts_dict(planner::memory_parts(), one.memory);
    layouts.append(row);
  }
  return ranking_dict(ranking, layouts);
}

py::dict axes_dict(const planner::ServingLayout& layout) {
  py::dict axes;
  axes["tp"] = layout.tp;
  axes["pp"] = layout.pp;
  axes["ep"] = layout.ep;
  axes["dp"] = layout.dp;
  axes["instances"] = layout.instances;
  return axes;
}

planner::Speculation speculation_of(const std::vector<double>& numbers,
                                    const planner::ModelShape& shape) {
  const auto speculation = planner::speculation_of(numbers, shape);
  if (!speculation) {
    throw py::value_error(
        "speculate is (drafted tokens of a step, chance of each), such as (3, 0.8), and as a third "
        "number the time of drafting one, in steps");
  }
  return *speculation;
}

py::dict quantiles_dict(const planner::Quantiles& quantiles) {
  py::dict result;
  result["p50"] = quantiles.half;
  result["p90"] = quantiles.nine_of_ten;
  result["p99"] = quantiles.most;
  return result;
}

py::dict plan_serving(const std::string& model, const std::shared_ptr<Topology>& on, double input,
                      double output, const std::string& precision, double concurrency, double ttft,
                      double tpot, double rate, double imbalance, double prefix_hits,
                      const std::optional<std::vector<double>>& speculate, bool pools,
                      const std::string& layout, const std::string& device, std::size_t top) {
  if (!(input >= 1) || !(output >= 1) || !(concurrency >= 0) || top < 1) {
    throw py::value_error("input, output and top must be 1 or more, and concurrency 0 or more");
  }
  if (!(rate >= 0 && std::isfinite(rate)) || !(prefix_hits >= 0 && prefix_hits < 1)) {
    throw py::value_error("rate must be 0 or more, and prefix_hits at least 0 and below 1");
  }
  if (!(imbalance >= 1 && std::isfinite(imbalance))) {
    throw py::value_error("imbalance must be 1 or more");
  }
  const planner::ModelShape shape = shape_of(model);
  const planner::Cluster cluster = cluster_of(*on, device);
  planner::ServingTask task{.input = input,
                            .output = output,
                            .concurrency = concurrency,
                            .imbalance = imbalance,
                            .prefix_hits = prefix_hits,
                            .requests_per_s = rate};
  if (speculate) {
    task.speculation = speculation_of(*speculate, shape);
  }
  if (precision.empty()) {
    take_stored(shape, cluster.device, task);
  } else {
    task.weights = precision_of(precision);
    task.cache = task.weights == planner::Precision::bf16 ? planner::Precision::bf16
                                                          : planner::Precision::f8;
  }
  planner::Ranking<planner::ServingEstimate> ranking;
  const planner::ServingLimits limits{.first_token_s = ttft, .token_s = tpot};
  if (layout.empty()) {
    const py::gil_scoped_release unlocked;
    ranking = search_serving(shape, task, limits, cluster, {.most = top, .tries_pools = pools});
  } else {
    const planner::ServingLayout one =
        planner::parse_serving_layout(layout, shape, cluster.devices);
    refuse(problem_of(shape, one, asked_of(task, one)));
    const py::gil_scoped_release unlocked;
    ranking = rank_layout(shape, one, task, limits, cluster);
  }
  py::list layouts;
  for (const planner::ServingEstimate& one : ranking.best) {
    py::dict row = axes_dict(one.layout);
    if (one.prompts.layout.instances > 0) {
      py::dict prompts = axes_dict(one.prompts.layout);
      prompts["prompt_s"] = one.prompts.prompt_s;
      row["prompts"] = prompts;
    }
    row["concurrency"] = one.concurrency;
    row["first_token_s"] = one.first_token_s;
    row["token_s"] = one.token_s;
    row["tokens_per_s_device"] = one.tokens_per_s_device;
    if (rate > 0) {
      row["most_requests_per_s"] = one.most_requests_per_s;
    }
    if (one.waits) {
      py::dict waits;
      waits["first_token_s"] = quantiles_dict(one.waits->first_token_s);
      waits["token_s"] = quantiles_dict(one.waits->token_s);
      waits["at_once"] = one.waits->at_once;
      row["waits"] = waits;
    }
    row["seconds"] = parts_dict(planner::token_parts(), one.parts);
    row["bytes"] = parts_dict(planner::memory_parts(), one.memory);
    layouts.append(row);
  }
  return ranking_dict(ranking, layouts);
}

}  // namespace

void define_model_plans(py::module_& module) {
  module.def("plan_training", plan_training, arg("model"), arg("on"), arg("batch"), arg("sequence"),
             arg("precision"), arg("layout"), arg("device"), arg("top"));
  module.def("plan_serving", plan_serving, arg("model"), arg("on"), arg("input"), arg("output"),
             arg("precision"), arg("concurrency"), arg("ttft"), arg("tpot"), arg("rate"),
             arg("imbalance"), arg("prefix_hits"), arg("speculate"), arg("pools"), arg("layout"),
             arg("device"), arg("top"));
}

}  // namespace unisono_python
