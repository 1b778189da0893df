// Tests training steps: they are right under layouts of all axes, and wrong if a node that moves
// data is removed or changed.
#include "step/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "network_model/simulator/simulate.h"
#include "network_model/simulator/workload.h"
#include "pipeline/catalog.h"
#include "step/calls.h"
#include "step/json.h"
#include "step/memory.h"
#include "step/problem.h"
#include "step/testing_mutants.h"
#include "step/verify.h"
#include "step/workload.h"
#include "unisono/error.hpp"

namespace unisono::step {
namespace {

struct Layout {
  const char* mesh;
  const char* words;
};

constexpr Layout kTrainingLayouts[] = {{"tp=1", ""},
                                       {"tp=1", "zero=3 sp vocab"},
                                       {"dp=2", ""},
                                       {"dp=2", "zero=1"},
                                       {"dp=2", "zero=2"},
                                       {"dp=4", "zero=3"},
                                       {"rep=2,dp=2", "zero=3"},
                                       {"tp=2", ""},
                                       {"tp=2", "sp"},
                                       {"tp=4", "vocab"},
                                       {"tp=8", "sp vocab"},
                                       {"cp=2", "striped"},
                                       {"cp=4", "all_gather contiguous"},
                                       {"uly=2", ""},
                                       {"cp=2,uly=2,tp=2", "sp vocab zero=3"},
                                       {"dp=2,cp=2,tp=2", "zero=1"},
                                       {"rep=2,dp=2,tp=2", "sp zero=3"},
                                       {"pp=2", "1f1b m=4"},
                                       {"pp=4", "gpipe m=8"},  // more stages than layers
                                       {"pp=2", "dualpipe m=4 zero=1"},
                                       {"pp=2,dp=2", "zbv m=4 zero=3"},
                                       {"pp=2,cp=2", "interleaved v=2 m=2 zero=2"},
                                       {"pp=4,dp=2", "dualpipe m=8 zero=3"},
                                       {"pp=2,tp=2", "zb-h1 m=4 sp vocab"}};

planner::ModelShape small_shape(bool is_gated) {
  return {.name = "small",
          .layers = 2,
          .hidden = 64,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = 8,
          .ffn = 128,
          .gated = is_gated,
          .vocabulary = 64};
}

// Like the latent attention of DeepSeek-V2, or of DeepSeek-V2-Lite, which does not compress
// queries.
planner::ModelShape shape_with_latents(double query_rank) {
  planner::ModelShape shape = small_shape(true);
  shape.latent = {
      .query_rank = query_rank, .value_rank = 16, .plain_dim = 8, .rotary_dim = 4, .value_dim = 12};
  return shape;
}

Step made_of(const planner::ModelShape& shape, const Layout& one, std::size_t sequences = 8) {
  TrainingTask task = parse_training(one.words);
  task.sequences = sequences;
  task.length = 32;
  return make_training_step(shape, one.mesh, task);
}

Step made(const Layout& one, bool is_gated = false, std::size_t sequences = 8) {
  return made_of(small_shape(is_gated), one, sequences);
}

TEST(Training, IsRightUnderLayouts) {
  for (const Layout& one : kTrainingLayouts) {
    for (const bool is_gated : {false, true}) {
      const Step step = made(one, is_gated);
      EXPECT_EQ(problem_of(step), "") << one.mesh << " " << one.words;
      EXPECT_EQ(text(verify(step)), "") << one.mesh << " " << one.words;
    }
  }
}

TEST(Training, NothingThatMovesMayBeLeftOut) {
  int mutants = 0;
  for (const Layout& one : kTrainingLayouts) {
    mutants += check_mutants(made(one), std::string(one.mesh) + " " + one.words);
  }
  EXPECT_GT(mutants, repetitions(500));
}

TEST(TrainingLatent, IsRightUnderLayouts) {
  for (const double query_rank : {24.0, 0.0}) {
    for (const Layout& one : kTrainingLayouts) {
      const Step step = made_of(shape_with_latents(query_rank), one);
      EXPECT_EQ(problem_of(step), "") << one.mesh << " " << one.words;
      EXPECT_EQ(text(verify(step)), "") << one.mesh << " " << one.words;
    }
  }
}

TEST(TrainingLatent, TakesTheFlopsOfItsWeightsAndOfAttention) {
  const planner::ModelShape shape = shape_with_latents(24);
  double flops = 0;
  const auto calls = calls_of(made_of(shape, {.mesh = "tp=1", .words = ""}));
  for (const Call& call : calls.front()) {
    flops += call.flops;
  }
  constexpr double kStepTokens = 8 * 32;
  const double weights = 2 * (planner::mixer_weights(shape, {}) + 3 * 64 * 128) + 64 * 64;
  // Scores are computed twice, their gradients and those of queries, keys and values once. Half of
  // the products is masked.
  const double attention = 2 * 8 * kStepTokens * 32 * (4 * (8 + 4) + 3 * 12);
  EXPECT_DOUBLE_EQ(flops, 6 * kStepTokens * weights + attention);
}

TEST(TrainingLatent, NothingThatMovesMayBeLeftOut) {
  int mutants = 0;
  for (const Layout& one : {Layout{"tp=2", "sp"}, Layout{"cp=2,uly=2,tp=2", "sp vocab zero=3"},
                            Layout{"pp=2,tp=2", "zb-h1 m=4"}, Layout{"dp=2,tp=2", "zero=1"}}) {
    for (const double query_rank : {24.0, 0.0}) {
      mutants += check_mutants(made_of(shape_with_latents(query_rank), one),
                               std::string(one.mesh) + " " + one.words);
    }
  }
  EXPECT_GT(mutants, repetitions(100));
}

// A ring has two halves, out and home, and neither is correct without the other.
TEST(Training, RingsGoOutAndComeHomeInPairs) {
  const Step right = made({.mesh = "cp=2,tp=2", .words = ""});
  const auto first_of = [&](const auto& change) {
    Step step = right;
    for (Section& section : step.sections) {
      if (section.name == "backward") {
        change(step, section);
        break;
      }
    }
    EXPECT_EQ(problem_of(step), "");
    const std::vector<Finding> findings = verify(step);
    return findings.empty() ? "right" : to_text(findings.front());
  };
  const auto by = [](Section& section, const char* way) -> Node& {
    return *std::find_if(section.nodes.begin(), section.nodes.end(),
                         [&](const Node& node) { return node.by == way; });
  };
  const std::string no_home =
      "backward, keys and values: no ring_home over cp follows to return its parts";
  const std::string not_out =
      "backward, d keys and values: no ring_with of matching parts precedes it over cp";
  EXPECT_EQ(first_of([](Step&, Section&) {}), "right");
  for (const char* way : {"", "ring"}) {
    EXPECT_EQ(first_of([&](Step&, Section& section) { by(section, "ring_with").by = way; }),
              not_out);
  }
  EXPECT_EQ(first_of([&](Step&, Section& section) { by(section, "ring_home").by = ""; }), no_home);
  EXPECT_NE(first_of([&](Step&, Section& section) {
              std::swap(by(section, "ring_with").by, by(section, "ring_home").by);
            }),
            "right");
  EXPECT_EQ(first_of([&](Step& step, Section& section) {
              const std::string& sums = by(section, "ring_home").reads.front();
              for (Tensor& tensor : step.tensors) {
                tensor.element_bytes *= tensor.name == sums ? 2 : 1;
              }
            }),
            not_out);
  // Two rings go out, and only one comes home.
  EXPECT_EQ(first_of([&](Step&, Section& section) {
              Node& node = by(section, "ring_with");
              Node half = node;
              half.reads.pop_back();
              half.writes.pop_back();
              node.reads.erase(node.reads.begin());
              node.writes.erase(node.writes.begin());
              section.nodes.insert(section.nodes.begin() + (&node - section.nodes.data()), half);
            }),
            no_home);
}

TEST(Training, TakesWhatTheStagesOfZeroTake) {
  const auto bytes = [](const char* words) {
    const Memory memory = memory_of(made({.mesh = "dp=4", .words = words})).front();
    return memory.weights;  // the optimiser's states included
  };
  const double whole = bytes("") / 3;  // a weight, its mean and its variance
  EXPECT_DOUBLE_EQ(bytes("zero=1"), 1.5 * whole);
  EXPECT_DOUBLE_EQ(bytes("zero=2"), 1.5 * whole);
  EXPECT_DOUBLE_EQ(bytes("zero=3"), 0.75 * whole);
}

// Weights that were gathered for the forward pass are freed until the backward pass gathers them
// again.
TEST(Training, GatheredWeightsAreNotHeldInBetween) {
  const Step step = made({.mesh = "dp=4", .words = "zero=3"});
  Step kept = step;
  for (Section& section : kept.sections) {
    std::erase_if(section.nodes, [&](const Node& node) { return !is_needed(section, node); });
  }
  EXPECT_EQ(text(verify(kept)), "");
  EXPECT_LT(memory_of(step).front().activations, memory_of(kept).front().activations);
}

TEST(Training, SaysWhatItDoesNotKnow) {
  for (const char* words : {"zero=4", "1f1b gpipe", "m=0", "v=2x", "1f2b"}) {
    EXPECT_THROW(parse_training(words), Error) << words;
  }
  EXPECT_THROW(made({.mesh = "pp=2", .words = ""}), Error);
  EXPECT_THROW(made({.mesh = "rep=4,dp=4", .words = ""}), Error) << "8 sequences";
  EXPECT_THROW(made({.mesh = "tp=2", .words = "1f1b"}), Error) << "a schedule without stages";
  EXPECT_THROW(made({.mesh = "pp=2", .words = "1f1b m=3"}), Error) << "8 sequences";
  EXPECT_THROW(made({.mesh = "pp=3", .words = "dualpipe"}), Error) << "an odd number of ranks";
}

TEST(TrainingPipeline, IsRightUnderEverySchedule) {
  for (const pipeline::Entry* entry : pipeline::catalog()) {
    const std::string words = std::string(entry->name) + " m=8";
    const Step step = made({.mesh = "pp=2,tp=2", .words = words.c_str()});
    EXPECT_EQ(problem_of(step), "") << words;
    EXPECT_EQ(text(verify(step)), "") << words;
    const auto parsed = parse_step_json(to_json(step));
    ASSERT_TRUE(parsed) << words << parsed.message;
    EXPECT_EQ(to_json(*parsed.value), to_json(step)) << words;
  }
}

TEST(TrainingPipeline, OrdersThatCannotBeAreFound) {
  Step step = made({.mesh = "pp=2", .words = "1f1b m=4"});
  std::vector<pipeline::Action>& actions = step.pipeline->actions[0];
  std::swap(actions.front(), actions.back());
  ASSERT_EQ(problem_of(step), "");
  const std::vector<Finding> findings = verify(step);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().kind, Finding::Kind::order) << to_text(findings.front());
}

TEST(TrainingPipeline, WhatCannotBeAPassIsAProblem) {
  const Step right = made({.mesh = "pp=2", .words = "1f1b m=4"});
  const auto problem = [&](const auto& change) {
    Step step = right;
    change(step);
    return problem_of(step);
  };
  const auto section = [](Step& step, const char* name) -> Section& {
    return *std::find_if(step.sections.rbegin(), step.sections.rend(),
                         [&](const Section& one) { return one.name == name; });
  };
  EXPECT_NE(
      problem([&](Step& step) { section(step, "optimiser of head").pass = StagePass::forward; }),
      "");
  EXPECT_NE(problem([&](Step& step) { section(step, "norm").stage = 0; }), "");
  EXPECT_NE(problem([&](Step& step) { section(step, "norm").pass = StagePass::forward; }), "");
  EXPECT_NE(problem([&](Step& step) { section(step, "pass on").pass = StagePass::none; }), "");
  EXPECT_NE(problem([&](Step& step) {
              Node& sum = section(step, "norm").nodes.front();
              sum.writes = sum.reads;
            }),
            "");
  EXPECT_NE(problem([&](Step& step) {
              section(step, "loss").nodes.front().kind = Node::Kind::broadcast;
            }),
            "");
  EXPECT_NE(problem([&](Step& step) { step.pipeline.reset(); }), "");
  EXPECT_NE(problem([&](Step& step) { step.mesh = "pp=4"; }), "");
  EXPECT_NE(problem([&](Step& step) { step.stage_axis = ""; }), "");
}

// GPipe holds all microbatches; 1F1B holds as many as the number of remaining stages.
TEST(TrainingPipeline, HoldsTheMicrobatchesThatAreUnderWay) {
  const auto bytes = [](const std::string& words, std::size_t sequences) {
    return memory_of(made({.mesh = "pp=2", .words = words.c_str()}, false, sequences))
        .front()
        .activations;
  };
  const double gpipe = bytes("gpipe m=8", 8) - bytes("gpipe m=4", 4);
  EXPECT_GT(gpipe, 0);
  EXPECT_DOUBLE_EQ(bytes("gpipe m=16", 16) - bytes("gpipe m=8", 8), 2 * gpipe);
  EXPECT_DOUBLE_EQ(bytes("1f1b m=16", 16), bytes("1f1b m=4", 4));
  EXPECT_NEAR(bytes("gpipe m=4", 4) - bytes("1f1b m=4", 4), gpipe / 2, gpipe / 100)
      << "four microbatches against two";
}

double simulated_us(const Step& step) {
  const auto workload = network_model::parse_workload_json(
      to_workload_json(step, *planner::find_device("h100"), planner::Precision::bf16));
  EXPECT_TRUE(workload) << workload.message;
  return network_model::simulate(*workload.value, cost::Parameters{.alpha_s = 1e-7}).total_us;
}

// Four stages share two layers, so one stage computes nothing. It must receive its input before it
// forwards it.
TEST(TrainingPipeline, AStageThatComputesNothingWaitsForWhatItHandsOn) {
  const Step step = made({.mesh = "pp=4", .words = "gpipe m=1"});
  const auto workload = network_model::parse_workload_json(
      to_workload_json(step, *planner::find_device("h100"), planner::Precision::bf16));
  ASSERT_TRUE(workload) << workload.message;
  constexpr double kMessageUs = 1e6;
  const cost::Parameters flat{.alpha_s = kMessageUs * 1e-6};
  // Three messages forward and three back. Then the norm and the loss each go around a ring of
  // four, in six messages.
  EXPECT_NEAR(network_model::simulate(*workload.value, flat).total_us / kMessageUs, 6 + 12, 0.1);
}

// Checks the properties that the papers state for their schedules: the bubble of one order, of
// overlapping orders, and of those that fill the bubble with weight gradients.
TEST(TrainingPipeline, IsPlayedInTheOrderOfItsSchedule) {
  const auto us = [](const std::string& words) {
    return simulated_us(made({.mesh = "pp=2,tp=2", .words = words.c_str()}));
  };
  const double one = us("1f1b m=8");
  EXPECT_GT(us("naive m=8"), 1.3 * one);
  EXPECT_LT(us("zbv m=8"), one);
  for (const pipeline::Entry* entry : pipeline::catalog()) {
    EXPECT_GT(us(std::string(entry->name) + " m=8"), 0.5 * one) << entry->name;
  }
}

TEST(Training, IsTheSameBehindAFile) {
  const Step step = made({.mesh = "cp=2,tp=2", .words = "sp zero=3"});
  const auto parsed = parse_step_json(to_json(step));
  ASSERT_TRUE(parsed) << parsed.message;
  EXPECT_EQ(to_json(*parsed.value), to_json(step));
}

}  // namespace
}  // namespace unisono::step
