#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "network_model/simulator/simulate.h"
#include "planner/goodput.h"
#include "planner/search.h"
#include "planner/stacks.h"
#include "planner/step.h"
#include "topology/presets.h"
#include "unisono/error.hpp"

namespace unisono::planner {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

ModelShape model(std::string_view name) {
  const std::optional<ModelShape> shape = find_model(name);
  EXPECT_TRUE(shape) << name;
  return shape.value_or(ModelShape{});
}

Cluster cluster(const std::string& preset, std::string_view device) {
  const Parsed<Topology> topology = make_preset(preset);
  EXPECT_TRUE(topology) << topology.message;
  return cluster_of(*topology.value, find_device(device).value_or(DeviceModel{}));
}

// The published sizes, in billions.
TEST(Shape, WeightsAreAsPublished) {
  const std::map<std::string, std::pair<double, double>> published = {
      {"llama3-8b", {8.03, 8.03}},     {"llama3-70b", {70.6, 70.6}},
      {"llama3-405b", {405.9, 405.9}}, {"mixtral-8x7b", {46.7, 12.9}},
      {"qwen3-30b-a3b", {30.5, 3.3}},  {"qwen3-235b-a22b", {235, 22}},
      {"deepseek-v3", {671, 37.5}},    {"gpt-oss-120b", {116.8, 5.7}},
      {"gpt3-175b", {174.6, 174.6}}};
  for (const auto& [name, weights] : published) {
    EXPECT_NEAR(total_weights(model(name)) / 1e9, weights.first, 0.015 * weights.first) << name;
    EXPECT_NEAR(active_weights(model(name)) / 1e9, weights.second, 0.04 * weights.second) << name;
  }
}

// 16 bytes per weight without sharding, 4 + 12/N with a sharded optimiser, and so on.
TEST(Memory, IsShardedAsZeroSays) {
  ModelShape shape = model("llama3-8b");
  TrainingTask task{.batch = 64, .sequence = 2048, .gradients = State::f32};
  const double weights = total_weights(shape) - shape.vectors;
  const auto held = [&](int zero, int dp) {
    const MemoryParts parts = training_memory(shape, {.dp = dp, .zero = zero}, task);
    return (parts.weights + parts.gradients + parts.optimiser) / weights;
  };
  EXPECT_NEAR(held(0, 8), 2 + 4 + 12, 1e-9);
  EXPECT_NEAR(held(1, 8), 2 + 4 + 12.0 / 8, 1e-9);
  EXPECT_NEAR(held(2, 8), 2 + 4.0 / 8 + 12.0 / 8, 1e-9);
  EXPECT_NEAR(held(3, 8), 18.0 / 8, 1e-9);
  task.gradients = State::bf16;
  EXPECT_NEAR(held(0, 8), 2 + 2 + 12, 1e-9);
  task.moments = State::bf16;
  EXPECT_NEAR(held(0, 8), 2 + 2 + 8, 1e-9);
}

TEST(Memory, OfWhatIsOffloadedIsTheHosts) {
  const ModelShape shape = model("llama3-70b");
  const TrainingTask task{.batch = 64, .sequence = 8192};
  const auto held = [&](Offload offload) {
    return training_memory(shape, {.tp = 4, .dp = 2, .offload = offload}, task);
  };
  const MemoryParts none = held({});
  EXPECT_EQ(held({.optimiser = true}).optimiser, 0);
  EXPECT_EQ(held({.optimiser = true}).activations, none.activations);
  EXPECT_LT(held({.activations = true}).activations, 0.1 * none.activations);
}

TEST(Memory, OfNarrowProductsIsLess) {
  const ModelShape shape = model("llama3-70b");
  const auto kept = [&](Precision precision) {
    return kept_bytes(shape, {.tp = 4, .dp = 2},
                      {.batch = 64, .sequence = 8192, .precision = precision});
  };
  EXPECT_LT(kept(Precision::f8), 0.9 * kept(Precision::bf16));
  EXPECT_LT(kept(Precision::f4), kept(Precision::f8));
}

// Korthikanti et al., 2022, equation 2: s b h (10 + 24/t + 5 a s/(h t)) per layer.
TEST(Memory, OfActivationsIsAsPublished) {
  const ModelShape gpt = model("gpt3-175b");
  const TrainingTask task{.batch = 1, .sequence = 2048, .materialised_attention = true};
  const auto bytes = [&](int tp, bool sequence_parallel) {
    Layout layout{.tp = tp, .pp = 96, .zero = 0, .sequence_parallel = sequence_parallel};
    const double several = training_memory(gpt, layout, task).activations;
    return several;  // one layer, one microbatch
  };
  const double tokens = 2048 * 12288.0;
  const double scores = 5.0 * 96 * 2048 / 12288;
  EXPECT_NEAR(bytes(8, false), tokens * (10 + 24.0 / 8 + scores / 8), 0.01 * bytes(8, false));
  EXPECT_NEAR(bytes(8, true), tokens * (34 + scores) / 8, 0.01 * bytes(8, true));
}

// Among the measured layouts, the one predicted to be fastest is nearly the fastest.
TEST(Training, TheLayoutChosenIsNearTheBest) {
  std::map<std::pair<double, int>, std::vector<MeasuredStep>> models;
  for (const MeasuredStep& step : built_in_evidence().steps()) {
    if (step.task.materialised_attention) {
      models[{step.shape.hidden, step.shape.layers}].push_back(step);
    }
  }
  EXPECT_EQ(models.size(), 4U);
  for (const auto& [size, steps] : models) {
    const std::vector<double> predicted = predict(steps);
    std::size_t chosen = 0;
    double best = steps.front().step_s;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      chosen = predicted[i] < predicted[chosen] ? i : chosen;
      best = std::min(best, steps[i].step_s);
    }
    EXPECT_LT(steps[chosen].step_s, 1.06 * best) << size.first;
  }
}

TEST(Search, OneDeviceAndThousands) {
  const TrainingTask task{.batch = 4, .sequence = 512};
  ModelShape small = model("llama3-8b");
  small.layers = 2;
  const Ranking<TrainingEstimate> one = search_training(small, task, cluster("dgx_h100", "h100"));
  ASSERT_FALSE(one.best.empty());
  EXPECT_EQ(one.best.front().layout.devices(), 8);

  const TrainingTask big{.batch = 1536, .sequence = 8192};
  const Ranking<TrainingEstimate> many = search_training(
      model("llama3-405b"), big, cluster("rail_optimised:nodes=128", "h100"), {.most = 3});
  ASSERT_EQ(many.best.size(), 3U);
  EXPECT_LE(many.best[0].step_s, many.best[1].step_s);
  EXPECT_LE(many.best[1].step_s, many.best[2].step_s);
  for (const TrainingEstimate& estimate : many.best) {
    EXPECT_EQ(estimate.layout.devices(), 1024);
    EXPECT_LE(estimate.memory.total(), 80e9);
    EXPECT_LT(estimate.utilisation, 1);
  }
  EXPECT_FALSE(many.refused.empty());
}

TEST(Search, SaysByHowMuchMemoryIsMissed) {
  const Ranking<TrainingEstimate> none = search_training(
      model("llama3-405b"), {.batch = 8, .sequence = 8192}, cluster("dgx_h100", "h100"));
  EXPECT_TRUE(none.best.empty());
  EXPECT_GT(none.least_missing_bytes, 1e9);
  EXPECT_FALSE(none.least_missing.empty());
}

// The step moves the bytes that the estimate counts. Simulated on its topology, it takes about the
// estimated time.
TEST(Step, IsPlayedOnItsTopology) {
  const Parsed<Topology> topology = make_preset("dgx_h100:nodes=2");
  ASSERT_TRUE(topology);
  const Cluster where = cluster_of(*topology.value, find_device("h100").value_or(DeviceModel{}));
  const TrainingTask task{.batch = 64, .sequence = 4096};
  const ModelShape shape = model("llama3-8b");
  for (const Layout layout :
       {Layout{.tp = 8, .dp = 2}, Layout{.tp = 2, .pp = 2, .dp = 4},
        Layout{.tp = 4, .pp = 4, .vp = 2, .dp = 1}, Layout{.pp = 8, .dp = 2}}) {
    ASSERT_EQ(problem_of(shape, layout, task), "");
    const double played = simulated_step_s(shape, layout, task, where, *topology.value);
    const double estimated = estimate_training(shape, layout, task, where).step_s;
    EXPECT_NEAR(played / estimated, 1, 0.25) << text_of(layout);
  }
}

// With few microbatches the bubble is large, so that this checks its formula.
TEST(Step, HasItsBubble) {
  const Parsed<Topology> topology = make_preset("dgx_h100");
  ASSERT_TRUE(topology);
  const Cluster where = cluster_of(*topology.value, find_device("h100").value_or(DeviceModel{}));
  ModelShape shape = model("llama3-8b");
  shape.vocabulary = 1024;  // no head that makes the last stage longer
  const TrainingTask task{.batch = 8, .sequence = 4096};
  for (const int parts : {1, 2, 4}) {
    const Layout layout{.pp = 8, .vp = parts};
    const double played = simulated_step_s(shape, layout, task, where, *topology.value);
    EXPECT_NEAR(played / estimate_training(shape, layout, task, where).step_s, 1, 0.15) << parts;
  }
}

TEST(Step, HasItsCollectives) {
  const Parsed<Topology> topology = make_preset("dgx_h100");
  ASSERT_TRUE(topology);
  const Cluster where = cluster_of(*topology.value, find_device("h100").value_or(DeviceModel{}));
  const TrainingTask task{.batch = 16, .sequence = 1024};
  const ModelShape shape = model("llama3-8b");
  const Step step = make_step(shape, {.tp = 2, .pp = 2, .dp = 2}, task, where, 4);
  double tensor_bytes = 0;
  int sends = 0;
  int reductions = 0;
  for (const StepItem& item : step.items) {
    if (item.name == "tensor") {
      tensor_bytes += item.bytes * item.repeat;
      EXPECT_EQ(item.ranks.size(), 2U);
      EXPECT_EQ(item.ranks[0] + 1, item.ranks[1]);
    }
    sends += item.collective == "broadcast" ? 1 : 0;
    reductions += item.name == "gradients" ? 1 : 0;
  }
  // Two all_reduces per layer and direction, 32 layers in two stages, 4 microbatches, two groups
  // per stage.
  EXPECT_EQ(tensor_bytes, 2.0 * 2 * 32 * 4 * 2 * (1024.0 * 4096 * 2));
  EXPECT_EQ(sends, 2 * 4 * 4);  // forward and backward, four ranks, four microbatches
  EXPECT_EQ(reductions, 4);     // one group per stage and position in the tensor-parallel group
  const Parsed<network_model::Workload> written = network_model::parse_workload_json(to_json(step));
  ASSERT_TRUE(written) << written.message << written.position;
  EXPECT_NEAR(network_model::simulate(*written.value, *topology.value).total_us /
                  network_model::simulate(workload_of(step), *topology.value).total_us,
              1, 1e-3);  // times are in whole microseconds
  EXPECT_THROW(make_step(shape, {.dp = 2048}, task, where, 1), Error);
}

// Compares with a simulation of failures, which lose the work since the last checkpoint and cost a
// restart.
TEST(Goodput, IsWhatAPlayOfFailuresLeaves) {
  const ModelShape shape = model("llama3-405b");
  const FailureRates rates{
      .device_mtbf_s = 50'000 * 3600.0, .storage_bytes_per_s = 50e9, .restart_s = 600};
  const Goodput goodput = goodput_of(shape, {}, 16'384, rates);
  EXPECT_NEAR(goodput.failure_every_s / 3600, 3.05, 0.01);
  std::mt19937_64 random(1);
  std::exponential_distribution<double> until(1 / goodput.failure_every_s);
  double time = 0;
  double kept = 0;
  double failure = until(random);
  while (kept < 3000 * goodput.failure_every_s) {
    const double attempt = goodput.checkpoint_every_s + goodput.checkpoint_s;
    if (time + attempt <= failure) {
      time += attempt;
      kept += goodput.checkpoint_every_s;
    } else {
      time = failure + rates.restart_s;
      failure = time + until(random);
    }
  }
  EXPECT_NEAR(goodput.share, kept / time, 0.01);
}

TEST(Goodput, IsWholeWithoutFailuresAndNothingUnderTooMany) {
  const ModelShape shape = model("llama3-8b");
  const auto share = [&](double mtbf_s) {
    return goodput_of(shape, {}, 1000,
                      {.device_mtbf_s = mtbf_s, .storage_bytes_per_s = 1e12, .restart_s = 600})
        .share;
  };
  EXPECT_GT(share(1e12), 0.999);
  EXPECT_LT(share(1e4), 0.001);
  EXPECT_GE(share(1), 0);
}

TEST(Serving, TokensTakeAsLongAsMeasured) {
  std::istringstream file(read_file(UNISONO_SERVING_DATA "/llama.csv"));
  std::string line;
  std::getline(file, line);
  std::vector<double> errors;
  std::vector<double> first_errors;
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line + ",");
    for (std::string cell; std::getline(row, cell, ',');) {
      cells.push_back(cell);
    }
    ASSERT_GE(cells.size(), 18U);
    const bool is_large = cells[2].find("70B") != std::string::npos;
    const std::string& quantised = cells[8];
    ServingTask task{.input = std::stod(cells[6]),
                     .output = std::stod(cells[7]),
                     .concurrency = std::stod(cells[10])};
    if (!quantised.empty()) {
      task.weights = quantised == "nvfp4" ? Precision::f4 : Precision::f8;
      task.cache = is_large ? Precision::f8 : Precision::bf16;
    }
    const std::string device = cells[3].substr(0, cells[3].find('_'));
    EXPECT_TRUE(is_serving_measured(model("llama3-8b"), device));
    const ServingLayout layout{.tp = std::stoi(cells[11])};
    const Cluster where = cluster(device == "h200" ? "hgx_h200" : "dgx_h100", device);
    const ServingEstimate estimate =
        estimate_serving(model(is_large ? "llama3-70b" : "llama3-8b"), layout, task, where);
    errors.push_back(std::abs(estimate.token_s * 1e3 / std::stod(cells[17]) - 1));
    first_errors.push_back(std::abs(estimate.first_token_s * 1e3 / std::stod(cells[16]) - 1));
  }
  ASSERT_EQ(errors.size(), 136U);
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.09);
  EXPECT_LE(errors[errors.size() * 9 / 10], kServingMargin);
  std::ranges::sort(first_errors);
  EXPECT_LT(first_errors[first_errors.size() / 2], 0.26);
  EXPECT_LE(first_errors[first_errors.size() * 9 / 10], kFirstTokenMargin);
}

Cluster twelve_nodes() {
  return {.device = find_device("h100").value_or(DeviceModel{}),
          .devices = 96,
          .domain = 8,
          .near_bytes_per_s = 450e9,
          .far_bytes_per_s = 50e9};
}

// DeepSeek-V3 on 12 nodes of H100, with prompts and answers on separate devices: 22.3k tokens per
// second and answering node, for prompts of 2000 tokens (the SGLang team, May 2025). Assumes 256
// requests per device and answers of 100 tokens.
TEST(Serving, GroupsThatShareExpertsTakeAsLongAsMeasured) {
  const ModelShape shape = model("deepseek-v3");
  const ServingTask task{
      .input = 2000, .output = 100, .concurrency = 64 * 256, .weights = Precision::f8};
  const ServingEstimate answers =
      estimate_answers(shape, {.ep = 64, .dp = 64}, task, twelve_nodes());
  EXPECT_NEAR(256 / answers.token_s, 22'300.0 / 8, 0.3 * 22'300 / 8);
  EXPECT_LT(answers.memory.total(), twelve_nodes().usable_bytes());
  EXPECT_GT(answers.parts.experts, answers.parts.weights);
}

TEST(Serving, PoolsKeepPaceWithEachOther) {
  const ModelShape shape = model("deepseek-v3");
  const ServingTask task{.input = 2000, .output = 1000, .concurrency = 0, .weights = Precision::f8};
  const ServingLimits limits{.token_s = 0.05};
  const auto best = [&](bool tries_pools) {
    return search_serving(shape, task, limits, twelve_nodes(), {.tries_pools = tries_pools})
        .best.front();
  };
  const ServingEstimate together = best(false);
  const ServingEstimate pools = best(true);
  EXPECT_EQ(together.prompts.layout.instances, 0);
  EXPECT_GT(pools.prompts.layout.instances, 0);
  EXPECT_GE(pools.tokens_per_s_device, together.tokens_per_s_device);
  EXPECT_LE(pools.layout.devices() + pools.prompts.layout.devices(), 96);
  EXPECT_LE(pools.token_s, 0.05);
  EXPECT_EQ(pools.parts.prompts, 0);
  // Neither pool exceeds its capacity.
  const double tokens = pools.tokens_per_s_device * 96;
  EXPECT_LE(tokens, 1.0001 * pools.layout.instances * pools.concurrency / pools.token_s);
  EXPECT_LE(tokens, 1.0001 * task.output * pools.prompts.layout.instances *
                        pools.prompts.layout.dp / pools.prompts.prompt_s);
  // Measured: 2,090 output tokens per second and device, over all 96 devices. Assumes answers of
  // 1000 tokens and 50 ms per token.
  EXPECT_NEAR(pools.tokens_per_s_device, 2090, 0.2 * 2090);
}

TEST(Serving, PoolsKeepTheLimitOfTheFirstToken) {
  const ServingTask task{.input = 2000, .output = 1000, .concurrency = 0, .weights = Precision::f8};
  const auto first = [&](double limit) {
    const auto ranking =
        search_serving(model("deepseek-v3"), task, {.first_token_s = limit, .token_s = 0.05},
                       twelve_nodes(), {.tries_pools = true});
    return ranking.best.empty() ? 0 : ranking.best.front().first_token_s;
  };
  const double free = first(0);
  EXPECT_GT(first(0.99 * free), 0);
  EXPECT_LE(first(0.99 * free), 0.99 * free);
}

TEST(Serving, GroupsOfOneAreAsBefore) {
  const ModelShape shape = model("llama3-8b");
  const ServingTask task{.input = 100, .output = 100, .concurrency = 4};
  EXPECT_EQ(problem_of(shape, {.ep = 1, .dp = 2}, task), "groups share experts: ep is tp x dp, 2");
  const ModelShape experts = model("deepseek-v3");
  EXPECT_EQ(problem_of(experts, {.ep = 8, .dp = 8}, task), "a group without a request");
  EXPECT_EQ(text_of(ServingLayout{.ep = 8, .dp = 8}), "tp=1,ep=8,dp=8,instances=1");
}

}  // namespace
}  // namespace unisono::planner
