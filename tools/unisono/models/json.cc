// Writes a plan as data (unisono.plan_model/1), with the rankings for other links and batches.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "models/models.h"
#include "plan/plan.h"
#include "planner/parts.h"

namespace unisono::cli {
namespace {

using planner::ServingEstimate;
using planner::TrainingEstimate;
using Json = nlohmann::ordered_json;

// The positions of the page's sliders. Links or batches that differ more need a new plan.
constexpr double kNear[] = {0.5, 1, 2};
constexpr double kFar[] = {0.25, 0.5, 1, 2, 4};
constexpr double kBatches[] = {0.25, 0.5, 1, 2, 4};
constexpr double kConcurrencies[] = {1, 8, 64, 512};  // and the most that fit

template <typename Parts>
Json parts_json(std::span<const planner::NamedPart<Parts>> names, const Parts& parts) {
  Json json;
  for (const auto& part : names) {
    std::string name(part.name);
    std::ranges::replace(name, ' ', '_');
    json[name] = rounded(parts.*part.value);
  }
  return json;
}

Json layout_json(const planner::Layout& layout) {
  return {{"tp", layout.tp},
          {"pp", layout.pp},
          {"vp", layout.vp},
          {"cp", layout.cp},
          {"uly", layout.uly},
          {"ep", layout.ep},
          {"dp", layout.dp},
          {"micro_batch", layout.micro_batch},
          {"zero", layout.zero},
          {"recompute", planner::to_string(layout.recompute)},
          {"offload", planner::to_string(layout.offload)},
          {"schedule", schedule_of(layout)}};
}

template <typename Estimate>
void add_refused(const planner::Ranking<Estimate>& ranking, Json& json) {
  json["tried"] = ranking.tried;
  json["fitting"] = ranking.fitting;
  json["refused"] = Json::array();
  for (const planner::Refusal& refusal : ranking.refused) {
    json["refused"].push_back({{"why", refusal.why}, {"layouts", refusal.layouts}});
  }
  if (ranking.best.empty() && !ranking.least_missing.empty()) {
    json["least_missing"] = {{"layout", ranking.least_missing},
                             {"bytes", rounded(ranking.least_missing_bytes)}};
  }
}

Json estimate_json(const TrainingEstimate& estimate) {
  return {{"layout", layout_json(estimate.layout)},
          {"step_s", rounded(estimate.step_s)},
          {"low_s", rounded(estimate.low_s)},
          {"high_s", rounded(estimate.high_s)},
          {"tokens_per_s_device", rounded(estimate.tokens_per_s_device)},
          {"flops_per_s_device", rounded(estimate.flops_per_s_device)},
          {"utilisation", rounded(estimate.utilisation)},
          {"seconds", parts_json(planner::step_parts(), estimate.parts)},
          {"bytes", parts_json(planner::memory_parts(), estimate.memory)},
          {"binding", binding(estimate)},
          {"simulated_s", rounded(estimate.simulated_s)}};
}

Json layout_json(const planner::ServingLayout& layout) {
  return {{"tp", layout.tp},
          {"pp", layout.pp},
          {"ep", layout.ep},
          {"dp", layout.dp},
          {"instances", layout.instances}};
}

// Returns null if the same devices process prompts and answers.
Json pool_json(const planner::PromptPool& pool) {
  return pool.layout.instances == 0
             ? Json(nullptr)
             : Json{{"layout", layout_json(pool.layout)},
                    {"prompt_s", rounded(pool.prompt_s)},
                    {"bytes", parts_json(planner::memory_parts(), pool.memory)}};
}

Json quantiles_json(const planner::Quantiles& quantiles) {
  return {{"p50", rounded(quantiles.half)},
          {"p90", rounded(quantiles.nine_of_ten)},
          {"p99", rounded(quantiles.most)}};
}

void add_waits(const ServingEstimate& estimate, Json& json) {
  if (estimate.waits) {
    json["waits"] = {{"first_token_s", quantiles_json(estimate.waits->first_token_s)},
                     {"token_s", quantiles_json(estimate.waits->token_s)},
                     {"at_once", rounded(estimate.waits->at_once)}};
  }
  if (estimate.most_requests_per_s > 0) {
    json["most_requests_per_s"] = rounded(estimate.most_requests_per_s);
  }
}

Json estimate_json(const ServingEstimate& estimate) {
  Json json = {{"layout", layout_json(estimate.layout)},
               {"prompts", pool_json(estimate.prompts)},
               {"concurrency", estimate.concurrency},
               {"first_token_s", rounded(estimate.first_token_s)},
               {"token_s", rounded(estimate.token_s)},
               {"tokens_per_s_device", rounded(estimate.tokens_per_s_device)},
               {"seconds", parts_json(planner::token_parts(), estimate.parts)},
               {"bytes", parts_json(planner::memory_parts(), estimate.memory)},
               {"binding", binding(estimate)}};
  add_waits(estimate, json);
  return json;
}

Json head_json(const ModelQuestion& question) {
  const planner::Constants& constants = question.cluster.device.constants;
  Json json;
  json["schema"] = "unisono.plan_model/1";
  json["model"] = question.shape.name;
  json["weights"] = total_weights(question.shape);
  json["active_weights"] = active_weights(question.shape);
  json["machine"] = question.cluster.name;
  json["device"] = question.cluster.device.name;
  json["devices"] = question.cluster.devices;
  json["memory_bytes"] = question.cluster.device.memory_bytes;
  json["headroom"] = question.cluster.headroom;
  json["constants"] = {{"compute", rounded(constants.compute)},
                       {"memory", rounded(constants.memory)},
                       {"network", rounded(constants.network)},
                       {"experts", rounded(constants.experts)},
                       {"source", constants.source}};
  return json;
}

void add_config(const ModelQuestion& question, Json& json) {
  const planner::ConfigAccount& account = question.account;
  if (!account.model_type.empty()) {
    json["config"] = {{"model_type", account.model_type},
                      {"used", account.used},
                      {"assumed", account.assumed},
                      {"left_out", account.left_out},
                      {"not_understood", account.not_understood}};
  }
}

Json head_json(const ModelQuestion& question, const planner::TrainingTask& task) {
  Json json = head_json(question);
  json["stack"] = {{"name", question.stack.name},
                   {"date", planner::date_text(question.stack.year)},
                   {"source", question.stack.source},
                   {"steps_alike", question.levels(task).alike()}};
  json["task"] = "train";
  json["batch"] = task.batch;
  json["sequence"] = task.sequence;
  json["precision"] = planner::to_string(task.precision);
  json["gradients"] = planner::to_string(task.gradients);
  json["moments"] = planner::to_string(task.moments);
  add_config(question, json);
  return json;
}

Json head_json(const ModelQuestion& question, const planner::ServingTask& task) {
  Json json = head_json(question);
  json["task"] = "serve";
  if (const double watts = question.cluster.device.watts; watts > 0) {
    json["watts"] = watts;
  }
  if (const double price = question.cluster.device.price_per_hour; price > 0) {
    json["price_per_hour"] = price;
  }
  json["input"] = task.input;
  json["output"] = task.output;
  json["concurrency"] = task.concurrency;
  if (task.requests_per_s > 0) {
    json["requests_per_s"] = task.requests_per_s;
  }
  json["imbalance"] = task.imbalance;
  json["prefix_hits"] = task.prefix_hits;
  if (task.speculation.drafted > 0) {
    json["speculation"] = {{"drafted", task.speculation.drafted},
                           {"accepted", task.speculation.accepted},
                           {"cost", rounded(task.speculation.cost)},
                           {"tokens_per_step", rounded(task.speculation.tokens_per_step())}};
  }
  // The share of token_s; null: no similar deployment was measured.
  json["margin"] = is_serving_measured(question.shape, question.cluster.device.name)
                       ? Json(planner::kServingMargin)
                       : Json(nullptr);
  json["first_token_margin"] =
      json["margin"].is_null() ? Json(nullptr) : Json(planner::kFirstTokenMargin);
  json["precision"] = planner::to_string(task.weights);
  if (task.stored) {
    json["stored"] = {{"as", task.stored->name},
                      {"bytes", bytes_of(part_weights(question.shape), *task.stored)},
                      {"not_quantised", task.stored->plain_parts}};
  }
  add_config(question, json);
  return json;
}

template <typename Estimate>
void add_ranking(const planner::Ranking<Estimate>& ranking, Json& json) {
  json["layouts"] = Json::array();
  for (const Estimate& estimate : ranking.best) {
    json["layouts"].push_back(estimate_json(estimate));
  }
  if (ranking.best.empty() && ranking.nearest) {
    json["nearest"] = estimate_json(*ranking.nearest);
  }
  add_refused(ranking, json);
}

// Returns a ranking for each pair of factors of the links' speeds and for each batch.
template <typename Search>
Json what_if_json(const ModelQuestion& question, const std::string& varied,
                  const std::vector<double>& values, const Search& search) {
  const bool is_one_domain = question.cluster.devices <= question.cluster.domain;
  const std::vector<double> near(std::begin(kNear), std::end(kNear));
  const std::vector<double> far = is_one_domain
                                      ? std::vector<double>{1}
                                      : std::vector<double>(std::begin(kFar), std::end(kFar));
  Json rankings = Json::array();
  for (const double near_factor : near) {
    for (const double far_factor : far) {
      planner::Cluster cluster = question.cluster;
      cluster.near_bytes_per_s *= near_factor;
      cluster.far_bytes_per_s *= far_factor;
      for (const double value : values) {
        Json ranking = {{"near", near_factor}, {"far", far_factor}, {varied, value}};
        add_ranking(search(cluster, value), ranking);
        rankings.push_back(std::move(ranking));
      }
    }
  }
  return {{"near", near}, {"far", far}, {varied, values}, {"rankings", std::move(rankings)}};
}

}  // namespace

std::string schedule_of(const planner::Layout& layout) {
  if (layout.pp == 1) {
    return "none";
  }
  return layout.vp > 1 ? "interleaved 1f1b" : "1f1b";
}

Json plan_json(const ModelQuestion& question, const planner::TrainingTask& task,
               const planner::Ranking<TrainingEstimate>& ranking) {
  Json json = head_json(question, task);
  add_ranking(ranking, json);
  return json;
}

Json plan_json(const ModelQuestion& question, const planner::ServingTask& task,
               const planner::Ranking<ServingEstimate>& ranking) {
  Json json = head_json(question, task);
  add_ranking(ranking, json);
  return json;
}

// Returns null if it was not requested.
Json goodput_json(const std::optional<planner::Goodput>& goodput) {
  return !goodput ? Json(nullptr)
                  : Json{{"share", rounded(goodput->share)},
                         {"failure_every_s", rounded(goodput->failure_every_s)},
                         {"checkpoint_bytes", rounded(goodput->checkpoint_bytes)},
                         {"checkpoint_s", rounded(goodput->checkpoint_s)},
                         {"checkpoint_every_s", rounded(goodput->checkpoint_every_s)}};
}

Json explanation_json(const ModelQuestion& question, const planner::TrainingTask& task,
                      const TrainingEstimate& estimate) {
  Json json = head_json(question, task);
  json["layouts"] = Json::array({estimate_json(estimate)});
  return json;
}

Json what_if_json(const ModelQuestion& question, const planner::TrainingTask& task,
                  const planner::SearchOptions& options) {
  std::vector<double> batches;
  for (const double factor : kBatches) {
    batches.push_back(std::max(1.0, std::floor(task.batch * factor)));
  }
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return what_if_json(question, "batch", batches,
                      [&](const planner::Cluster& cluster, double batch) {
                        planner::TrainingTask other = task;
                        other.batch = batch;
                        return search_training(question.shape, other, cluster,
                                               {.most = options.most, .levels = options.levels});
                      });
}

Json what_if_json(const ModelQuestion& question, const planner::ServingTask& task,
                  const planner::ServingLimits& limits, std::size_t most) {
  std::vector<double> at_once(std::begin(kConcurrencies), std::end(kConcurrencies));
  if (task.concurrency > 0 && std::ranges::find(at_once, task.concurrency) == at_once.end()) {
    at_once.insert(std::ranges::upper_bound(at_once, task.concurrency), task.concurrency);
  }
  at_once.push_back(0);
  return what_if_json(
      question, "concurrency", at_once, [&](const planner::Cluster& cluster, double concurrency) {
        planner::ServingTask other = task;
        other.concurrency = concurrency;
        return search_serving(question.shape, other, limits, cluster, {.most = most});
      });
}

}  // namespace unisono::cli
