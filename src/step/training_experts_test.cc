// Tests training steps of models with experts, and of models whose head is their embedding.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "step/calls.h"
#include "step/json.h"
#include "step/memory.h"
#include "step/problem.h"
#include "step/testing_mutants.h"
#include "step/training.h"
#include "step/verify.h"
#include "step/workload.h"
#include "unisono/error.hpp"

namespace unisono::step {
namespace {

constexpr int kSequences = 8;
constexpr int kLength = 32;
constexpr int kWidth = 64;
constexpr int kExperts = 8;
constexpr int kChosen = 2;
constexpr int kHidden = 48;  // width of an expert

planner::ModelShape with_experts() {
  return {.name = "small",
          .layers = 2,
          .hidden = kWidth,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 8,
          .gated = true,
          .vocabulary = 64,
          .experts = kExperts,
          .experts_per_token = kChosen,
          .expert_ffn = kHidden};
}

planner::ModelShape with_dense_and_shared() {
  planner::ModelShape shape = with_experts();
  shape.gated = false;
  shape.ffn = 128;
  shape.kinds.resize(1);
  shape.shared_ffn = 32;
  return shape;
}

planner::ModelShape with_tied_head() {
  planner::ModelShape shape = with_experts();
  shape.experts = 0;
  shape.ffn = 128;
  shape.tied = true;
  return shape;
}

Step made(const planner::ModelShape& shape, const std::string& mesh, const char* words) {
  TrainingTask task = parse_training(words);
  task.sequences = kSequences;
  task.length = kLength;
  return make_training_step(shape, mesh, task);
}

struct Case {
  const char* mesh;
  const char* words;
};

constexpr Case kCases[] = {{"tp=1", ""},
                           {"tp=4", "sp vocab"},
                           {"dp=4", "zero=3"},
                           {"ep=2", ""},
                           {"ep=8", "zero=3"},
                           {"ep=4", "zero=1"},
                           {"dp=2,ep=2", ""},
                           {"dp=2,ep=4", "zero=2"},
                           {"rep=2,dp=2,ep=2", "zero=3"},
                           {"ep=2,tp=2", ""},
                           {"ep=2,tp=4", "sp vocab zero=1"},
                           {"ep=2,cp=2,uly=2", "striped"},
                           {"dp=2,ep=2,cp=2,tp=2", "sp zero=3"},
                           {"pp=2,ep=2", "1f1b m=4"},
                           {"pp=2,dp=2,ep=2", "zbv m=2 zero=1"},
                           {"pp=2,ep=2,tp=2", "dualpipe m=4 sp vocab"}};

TEST(TrainingExperts, AreRightUnderLayouts) {
  for (const auto& shape : {with_experts(), with_dense_and_shared()}) {
    for (const auto& [mesh, words] : kCases) {
      const Step step = made(shape, mesh, words);
      EXPECT_EQ(problem_of(step), "") << mesh << " " << words;
      EXPECT_EQ(text(verify(step)), "") << mesh << " " << words;
      const auto parsed = parse_step_json(to_json(step));
      ASSERT_TRUE(parsed) << parsed.message;
      EXPECT_EQ(to_json(*parsed.value), to_json(step)) << mesh << " " << words;
      EXPECT_NE(to_workload_json(step, *planner::find_device("h100"), planner::Precision::bf16),
                "");
    }
  }
}

TEST(TrainingExperts, NothingThatMovesMayBeLeftOut) {
  int mutants = 0;
  for (const auto& [mesh, words] : kCases) {
    mutants +=
        check_mutants(made(with_dense_and_shared(), mesh, words), std::string(mesh) + " " + words);
  }
  EXPECT_GT(mutants, repetitions(500));
}

// In each direction, rows are sent and come back, and also one number per pair of a row and an
// expert.
TEST(TrainingExperts, SendWhatTheirRowsNeed) {
  const auto calls = calls_of(made(with_experts(), "dp=2,ep=4,tp=2", ""));
  const double rows = kSequences / 8 * kLength;  // the rank's own rows, for any tp
  const double layers = 2;
  std::map<std::string, double> bytes;
  std::map<std::string, int> times;
  for (const Call& call : calls.front()) {
    if (call.what == "dispatch" || call.what == "combine") {
      bytes[call.what] += call.bytes;
      ++times[call.what];
      EXPECT_EQ(call.group.size(), 4U);
    }
  }
  const double pairs = rows * kChosen;
  EXPECT_EQ(times["dispatch"], 3 * layers);
  EXPECT_EQ(times["combine"], 3 * layers);
  EXPECT_DOUBLE_EQ(bytes["dispatch"], layers * 4 * (2 * pairs * kWidth + pairs));
  EXPECT_DOUBLE_EQ(bytes["combine"], layers * 4 * (2 * pairs * kWidth + pairs));
}

// All ranks together multiply each row with the matrices of as many experts as it chose.
TEST(TrainingExperts, ComputeWhatWasChosen) {
  for (const char* mesh : {"tp=1", "ep=4", "dp=2,ep=2,tp=2"}) {
    double flops = 0;
    for (const auto& calls : calls_of(made(with_experts(), mesh, ""))) {
      for (const Call& call : calls) {
        const bool is_of_expert = call.node.find("expert ") != std::string::npos;
        flops += is_of_expert ? call.flops : 0;
      }
    }
    // Three matrices: forward, gradients of inputs (one of which has another name) and gradients of
    // weights.
    const double product = 2.0 * kSequences * kLength * kChosen * kWidth * kHidden;
    EXPECT_DOUBLE_EQ(flops, 2 * (3 + 1 + 3) * product) << mesh;
  }
}

// Expert weights are sharded along ep, and their gradients are summed over the other axes only.
TEST(TrainingExperts, AreNobodysReplicasAlongTheirAxis) {
  const auto weights = [](const std::string& mesh, const char* words) {
    return memory_of(made(with_experts(), mesh, words)).front().weights;
  };
  const double of_experts = 3.0 * 4 * 2 * 3 * kExperts * kWidth * kHidden;  // with their states
  EXPECT_DOUBLE_EQ(weights("tp=1", "") - weights("ep=4", ""), 0.75 * of_experts);
  double summed = 0;
  const auto calls = calls_of(made(with_experts(), "dp=2,ep=4", ""));
  for (const Call& call : calls.front()) {
    if (call.node == "expert gradients summed") {
      EXPECT_EQ(call.group.size(), 2U) << "dp alone";
      summed += call.bytes;
    }
  }
  EXPECT_DOUBLE_EQ(summed, of_experts / 3 / 4);
}

TEST(TrainingTied, IsRightUnderLayouts) {
  int mutants = 0;
  for (const auto& [mesh, words] :
       {Case{"tp=1", ""}, Case{"dp=2,tp=2", "vocab"}, Case{"dp=4", "zero=2"}, Case{"tp=4", "sp"},
        Case{"dp=2,cp=2,tp=2", "sp vocab zero=1"}, Case{"dp=2,tp=2", "zero=3"}}) {
    const Step step = made(with_tied_head(), mesh, words);
    EXPECT_EQ(problem_of(step), "") << mesh << " " << words;
    EXPECT_EQ(text(verify(step)), "") << mesh << " " << words;
    EXPECT_EQ(step.find_tensor("output"), nullptr);
    // Sharded weights are gathered a second time for the head, which only saves memory.
    mutants += step.find_tensor("embedding stored") != nullptr ? 0 : check_mutants(step, mesh);
  }
  EXPECT_GT(mutants, 50);
}

TEST(TrainingExperts, AreRefusedWhereTheyCannotBe) {
  const auto refusal = [](const planner::ModelShape& shape, const char* mesh, const char* words) {
    try {
      made(shape, mesh, words);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal(with_tied_head(), "ep=2", "").find("has no experts"), std::string::npos);
  EXPECT_NE(refusal(with_tied_head(), "pp=2", "1f1b m=4").find("one matrix"), std::string::npos);
  EXPECT_EQ(refusal(with_tied_head(), "ep=1", ""), "");
  EXPECT_NE(refusal(with_experts(), "ep=16", "").find("8 experts, but ep is 16"),
            std::string::npos);
  EXPECT_NE(refusal(with_experts(), "dp=3,ep=4", "").find("fewer than the 12 parts"),
            std::string::npos);
  EXPECT_NE(refusal(with_experts(), "tp=4,uly=4", "").find("8 heads"), std::string::npos);
  EXPECT_EQ(refusal(with_experts(), "tp=4,uly=2", ""), "");
}

}  // namespace
}  // namespace unisono::step
