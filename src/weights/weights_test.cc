// Tests the weights and layouts of known models, and layouts that do not fit.
#include "weights/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "unisono/error.hpp"
#include "unisono/parallel/reshard_names.hpp"

namespace unisono::weights {
namespace {

using parallel::ReshardPlan;
using parallel::ReshardTensor;

planner::ModelShape model(std::string_view name) {
  return *planner::find_model(name);
}

const Weight& find(const Weights& weights, std::string_view name) {
  return *std::ranges::find(weights.all, name, &Weight::name);
}

double count_of(const Weights& weights) {
  double all = 0;
  for (const Weight& weight : weights.all) {
    all += std::accumulate(
        weight.shape.begin(), weight.shape.end(), 1.0,
        [](double product, std::size_t n) { return product * static_cast<double>(n); });
  }
  return all;
}

ReshardPlan plan_of(std::string_view name, std::string_view from, std::string_view to, int ranks) {
  const planner::ModelShape shape = model(name);
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    hosts.push_back(rank / 8);
  }
  return parallel::plan_reshard(reshard_tensors(shape, weights_of(shape), Dtype::bf16,
                                                ModelLayout::parse(from), ModelLayout::parse(to)),
                                hosts);
}

std::string error_of(std::string_view name, std::string_view from, std::string_view to) {
  try {
    static_cast<void>(plan_of(name, from, to, 64));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The names cover all weights that the shape counts.
TEST(Weights, AreAllOfKnownModels) {
  for (const char* name : {"llama3-8b", "llama3-70b", "llama3-405b", "mixtral-8x7b",
                           "qwen3-30b-a3b", "qwen3-235b-a22b", "deepseek-v3", "kimi-k2"}) {
    const planner::ModelShape shape = model(name);
    const Weights weights = weights_of(shape);
    EXPECT_EQ(weights.left_out, 0) << name;
    EXPECT_EQ(count_of(weights), planner::total_weights(shape)) << name;
  }
  EXPECT_EQ(weights_of(model("llama3-70b")).all.size(), 723U);
}

// A shape that counts weights without a name is refused.
TEST(Weights, AreRefusedForOtherParts) {
  planner::ModelShape shape = model("llama3-8b");
  shape.vectors *= 1000;
  EXPECT_THROW(static_cast<void>(weights_of(shape)), Error);
}

TEST(Weights, AreNamedAsInTheCheckpoint) {
  const Weights dense = weights_of(model("llama3-8b"));
  EXPECT_EQ(find(dense, "model.layers.31.self_attn.k_proj.weight").shape,
            (std::vector<std::size_t>{1024, 4096}));
  EXPECT_EQ(find(dense, "model.layers.0.mlp.down_proj.weight").dim, 1);
  const Weights experts = weights_of(model("qwen3-30b-a3b"));
  EXPECT_EQ(find(experts, "model.layers.47.mlp.experts.127.up_proj.weight").shape,
            (std::vector<std::size_t>{768, 2048}));
  EXPECT_EQ(find(experts, "model.layers.0.self_attn.q_norm.weight").shape,
            std::vector<std::size_t>{128});
  const Weights latent = weights_of(model("deepseek-v3"));
  EXPECT_EQ(find(latent, "model.layers.0.self_attn.kv_a_proj_with_mqa.weight").shape,
            (std::vector<std::size_t>{576, 7168}));
  EXPECT_EQ(find(latent, "model.layers.3.mlp.gate.e_score_correction_bias").shape,
            std::vector<std::size_t>{256});
}

// Ranks are assigned as Megatron assigns them, whatever the order of the text.
TEST(ModelLayout, OrdersItsAxes) {
  const ModelLayout layout = ModelLayout::parse("tp=2,ep=4,pp=2,dp=2 on 8-15");
  EXPECT_EQ(layout.text(), "pp=2,dp=2,tp=2,ep=4 on 8-15");
  EXPECT_EQ(layout.stage(1), (std::vector<int>{12, 13, 14, 15}));
  EXPECT_EQ(ModelLayout::parse("tp=1").text(), "tp=1 on 0");
  EXPECT_EQ(ModelLayout::parse("tp=1 on 3").last_rank(), 3);
}

// Key heads stay whole if there are more ranks than heads.
TEST(ModelLayout, CopiesHeadsThatAreTooFew) {
  const planner::ModelShape shape = model("qwen3-30b-a3b");  // 4 heads of keys
  const std::vector<ReshardTensor> tensors =
      reshard_tensors(shape, weights_of(shape), Dtype::bf16, ModelLayout::parse("tp=8"),
                      ModelLayout::parse("tp=2"));
  const ReshardTensor& key =
      *std::ranges::find(tensors, "model.layers.0.self_attn.k_proj.weight", &ReshardTensor::name);
  EXPECT_EQ(parallel::elements_at(key.from, key.shape, 2),
            parallel::elements_at(key.from, key.shape, 3));
  EXPECT_EQ(parallel::shape_of(parallel::elements_at(key.from, key.shape, 2)),
            (std::vector<std::size_t>{128, 2048}));
}

TEST(ModelLayout, DistributesExperts) {
  const planner::ModelShape shape = model("qwen3-30b-a3b");
  const std::vector<ReshardTensor> tensors =
      reshard_tensors(shape, weights_of(shape), Dtype::bf16,
                      ModelLayout::parse("tp=2,dp=4,ep=2,etp=2"), ModelLayout::parse("dp=8,ep=8"));
  const ReshardTensor& expert = *std::ranges::find(
      tensors, "model.layers.0.mlp.experts.64.down_proj.weight", &ReshardTensor::name);
  EXPECT_EQ(expert.from.ranks, (std::vector<int>{2, 3, 6, 7}));
  EXPECT_EQ(parallel::shape_of(parallel::elements_at(expert.from, expert.shape, 1)),
            (std::vector<std::size_t>{2048, 384}));
  EXPECT_EQ(expert.to.ranks, std::vector<int>{4});
}

// Plans for whole models are proved to move the fewest bytes.
TEST(ModelLayout, PlansWholeModels) {
  for (const auto& [name, from, to, ranks] :
       {std::tuple("llama3-70b", "tp=8,pp=4,dp=2", "tp=4,dp=4 on 64-79", 80),
        std::tuple("llama3-8b", "fsdp=4,tp=2", "tp=2,dp=4", 8),
        std::tuple("qwen3-30b-a3b", "tp=2,pp=2,dp=4,ep=8", "dp=8,ep=8,tp=1 on 16-23", 24),
        std::tuple("deepseek-v3", "tp=2,dp=8,pp=4,ep=16", "tp=2,dp=8,ep=8 on 64-79", 80)}) {
    const ReshardPlan plan = plan_of(name, from, to, ranks);
    EXPECT_EQ(parallel::verify_reshard(plan), std::vector<std::string>()) << name;
    const parallel::ReshardBound bound = parallel::reshard_bound(plan);
    EXPECT_EQ(plan.bytes_between_hosts(), bound.bytes_between_hosts) << name;
    EXPECT_EQ(plan.bytes_sent(), bound.bytes_sent) << name;
    EXPECT_LE(std::ranges::max(plan.bytes_sent_by_rank()), bound.bytes_sent_by_busiest * 105 / 100)
        << name;
    EXPECT_GE(std::ranges::max(plan.bytes_sent_by_rank()), bound.bytes_sent_by_busiest) << name;
  }
}

// The maps in examples/reshard give every checkpoint tensor a place in the engine.
TEST(NameMaps, FitTheirModels) {
  for (const auto& [file, name, targets, fused] :
       {std::tuple("llama.json", "llama3-70b", 483U, 160U),
        std::tuple("qwen3_moe.json", "qwen3-30b-a3b", 435U, 144U),
        std::tuple("deepseek_v3.json", "deepseek-v3", 845U, 238U)}) {
    std::ifstream stream(std::string(UNISONO_NAME_MAPS) + "/" + file);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    std::vector<parallel::NamedTensor> sources;
    for (const Weight& weight : weights_of(model(name)).all) {
      sources.push_back({.name = weight.name, .dtype = Dtype::bf16, .shape = weight.shape});
    }
    const auto made = parallel::NameMap::parse(text).apply(sources);
    std::size_t parts = 0;
    std::size_t joined = 0;
    for (const parallel::NamedTarget& target : made) {
      parts += target.parts.size();
      joined += target.parts.size() > 1 ? 1U : 0U;
    }
    EXPECT_EQ(parts, sources.size()) << file;
    EXPECT_EQ(made.size(), targets) << file;
    EXPECT_EQ(joined, fused) << file;
  }
}

TEST(ModelLayoutErrors, ListEverythingThatDoesNotFit) {
  EXPECT_EQ(error_of("llama3-8b", "tp=3,pp=40", "tp=1,dp=8,ep=8"),
            "usage: the layouts do not fit llama3-8b\n"
            "pp=40,tp=3 on 0-119: pp has more stages than the model's 32 layers\n"
            "pp=40,tp=3 on 0-119: tp=3 neither divides the 32 heads of "
            "model.layers.0.self_attn.q_proj.weight nor is a multiple of them\n"
            "pp=40,tp=3 on 0-119: tp=3 neither divides the 8 heads of "
            "model.layers.0.self_attn.k_proj.weight nor is a multiple of them\n"
            "dp=8,ep=8 on 0-7: ep and etp need a model with experts");
}

TEST(ModelLayoutErrors, RefuseTextThatIsNoLayout) {
  for (const char* text : {"", "tp", "tp=", "tp=0", "tp=2,tp=2", "xp=2", "tp=2 on 0", "tp=2 on 0-x",
                           "tp=2,ep=4", "tp=2: tp=shard(0)", "tp=1048576,pp=1048576", "fsdp=2,ep=2",
                           "tp=2,ep=1048576,etp=1048576"}) {
    EXPECT_THROW(static_cast<void>(ModelLayout::parse(text)), Error) << text;
  }
}

}  // namespace
}  // namespace unisono::weights
