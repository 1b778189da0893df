#include "pipeline/verify.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "pipeline/catalog.h"
#include "pipeline/json.h"
#include "pipeline/run.h"
#include "pipeline/stage_actions.h"
#include "pipeline/text.h"

namespace unisono::pipeline {
namespace {

Pipeline read(std::string_view csv) {
  Parsed<Pipeline> parsed = parse_csv(csv);
  EXPECT_TRUE(parsed) << parsed.message;
  return std::move(*parsed.value);
}

std::string first_finding(std::string_view csv) {
  const Verdict verdict = verify(read(csv));
  return verdict.right() ? "right" : sentence(verdict.findings.front());
}

TEST(PipelineVerify, SaysWhatIsWrong) {
  EXPECT_EQ(first_finding("0F0,0B0\n1F0,1B0"), "right");
  EXPECT_EQ(first_finding("0F0,0B0,0F0"),
            "rank 0 does 0F0 (action 3), which is done already or is not of this stage");
  EXPECT_EQ(first_finding("0F0\n1F0,1B0"), "rank 0 never does 0B0");
  EXPECT_EQ(first_finding("0F0,0I0"), "rank 0 never does 0W0");
  EXPECT_EQ(first_finding("0B0,0F0"), "rank 0 does 0B0 (action 1) without 0F0 before it");
  EXPECT_EQ(first_finding("0F0,0F1,0B0,0REDUCE_GRAD,0B1"),
            "rank 0 does 0REDUCE_GRAD (action 4) without the last W of stage 0 before it");
  EXPECT_EQ(first_finding("0F0,0B0\n1F0,1B0,0F0"),
            "rank 1 does 0F0 (action 5), but the stage is on rank 0");
  EXPECT_EQ(first_finding("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                          "1RECV_F1,1F1,1B1,1RECV_F0,1F0,1B0,1SEND_B0,1SEND_B1"),
            "rank 0 sends 0SEND_F0 where rank 1 does 1RECV_F1: a lane keeps its order");
  EXPECT_EQ(first_finding("0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0"),
            "rank 0 does 0RECV_B0, for which rank 1 has no send");
}

// PyTorch refuses the same orders when it runs them on sharded stages.
TEST(PipelineVerify, ParametersAndGradientsOfAStageAreThereOnce) {
  EXPECT_EQ(first_finding("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0REDUCE_GRAD,0RESHARD"), "right");
  EXPECT_EQ(first_finding("0F0,0UNSHARD,0B0"),
            "rank 0 does 0F0 (action 1) without 0UNSHARD before it");
  EXPECT_EQ(first_finding("0UNSHARD,0F0,0RESHARD,0B0"),
            "rank 0 does 0B0 (action 4) without 0UNSHARD before it");
  EXPECT_EQ(first_finding("0UNSHARD,0F0,0UNSHARD,0B0"),
            "rank 0 does 0UNSHARD (action 3), which is done already or is not of this stage");
  EXPECT_EQ(first_finding("0UNSHARD,0F0,0B0,0RESHARD,0RESHARD"),
            "rank 0 does 0RESHARD (action 5) without 0UNSHARD before it");
  EXPECT_EQ(first_finding("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD"),
            "rank 0 does 0REDUCE_GRAD (action 4), which is done already or is not of this stage");
  EXPECT_EQ(first_finding("0F0,0B0,0REDUCE_GRAD\n1F0,1B0"), "rank 1 never does 1REDUCE_GRAD");
}

// The order of https://github.com/pytorch/pytorch/issues/172668, completed: each of two ranks
// sends, and neither receives.
TEST(PipelineVerify, FindsTheDeadlockOfTwoSends) {
  Pipeline pipeline = read(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1");
  pipeline.lanes = 1;
  EXPECT_EQ(verify(pipeline).least_capacity, 1);
  EXPECT_TRUE(verify(pipeline).right());
  pipeline.capacity = 0;
  const Verdict verdict = verify(pipeline);
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(
      sentence(verdict.findings.front()),
      "rank 0 cannot begin 0B0, as 0SEND_F1 waits for rank 1, and rank 1 cannot begin 1F1, as "
      "1SEND_B0 waits for rank 0");
  pipeline.lanes = 2;  // forward and backward lanes do not wait for each other
  EXPECT_EQ(verify(pipeline).least_capacity, 0);
}

TEST(PipelineVerify, RanksThatWaitInACircleAreNamed) {
  // Rank 0 does B of stage 0 before the F of stage 2 that produces its gradient.
  EXPECT_EQ(
      first_finding("0F0,0B0,2F0,2B0\n1F0,1B0"),
      "rank 0 cannot begin 0B0, as 0RECV_B0 waits for rank 1, and rank 1 cannot begin 1B0, as "
      "1RECV_B0 waits for rank 0");
}

// Rank 0 is not in the cycle, but waits for it, and enters it at rank 2 instead of rank 1.
TEST(PipelineVerify, ACircleIsToldFromItsFirstRank) {
  EXPECT_EQ(
      first_finding("4F0,4B0\n0F0,0B0,2F0,2B0\n1F0,1B0,3F0,3B0"),
      "rank 1 cannot begin 0B0, as 0RECV_B0 waits for rank 2, and rank 2 cannot begin 1B0, as "
      "1RECV_B0 waits for rank 1");
}

TEST(PipelineVerify, BytesAreThoseOfTheStages) {
  Pipeline pipeline = read("0F0,0F1,0I0,0I1,0W0,0W1");
  pipeline.memory = {.activation_bytes = {10}, .kept_bytes = {4}};
  EXPECT_EQ(verify(pipeline).peak_bytes, (std::vector<double>{20}));
  pipeline = read("0F0,0I0,0F1,0I1,0W0,0W1");
  pipeline.memory = {.activation_bytes = {10}, .kept_bytes = {4}};
  EXPECT_EQ(verify(pipeline).peak_bytes, (std::vector<double>{14}));
}

// An overlap holds the results of its F before its B frees anything, whichever is written first.
TEST(PipelineVerify, TheSpellingOfAnOverlapDoesNotChangeThePeak) {
  for (const char* csv : {"0F0,(0F1;0B0)OVERLAP_F_B,0B1", "0F0,(0B0;0F1)OVERLAP_F_B,0B1"}) {
    EXPECT_EQ(verify(read(csv)).peak_bytes, (std::vector<double>{2})) << csv;
    EXPECT_EQ(verify(read(csv)).peak_activations, (std::vector<int>{2})) << csv;
  }
}

// Every rank does all of its first stage before its second stage. So each rank waits for the next
// one, and the last one for the first.
TEST(PipelineVerify, ACircleOfManyRanksIsFoundAtOnce) {
  std::string csv;
  for (int rank = 0; rank < kMostRanks; ++rank) {
    const std::string first = std::to_string(rank);
    const std::string second = std::to_string(kMostRanks + rank);
    csv += first + "F0," + first + "B0," + second + "F0," + second + "B0\n";
  }
  const Verdict verdict = verify(read(csv));
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings.front().waits.size(), static_cast<std::size_t>(kMostRanks));
}

// Rank 0 has thousands of lanes, and little traffic on each.
TEST(PipelineVerify, ARankWithManyPeersIsPlayedAtOnce) {
  constexpr int kPeers = 2047;
  constexpr int kMicrobatches = 64;
  std::string rows;
  std::string others;
  for (const char* kind : {"F", "B"}) {
    for (int i = 0; i < kMicrobatches; ++i) {
      for (int peer = 0; peer < kPeers; ++peer) {
        const int place = kind[0] == 'F' ? peer : kPeers - 1 - peer;
        rows += std::to_string(2 * place) + kind + std::to_string(i) + ",";
      }
    }
  }
  for (int peer = 0; peer < kPeers; ++peer) {
    others += "\n";
    for (const char* kind : {"F", "B"}) {
      for (int i = 0; i < kMicrobatches; ++i) {
        others += std::to_string(2 * peer + 1) + kind + std::to_string(i) + ",";
      }
    }
  }
  EXPECT_TRUE(verify(read(rows + others)).right());
}

// Every I on rank 1 needs a message that no rank sends, after as many messages that rank 0 does
// send.
TEST(PipelineVerify, WhatNobodySendsIsNotLookedForAgainAndAgain) {
  constexpr int kStages = 8;
  constexpr int kMicrobatches = kMostMicrobatches;
  std::string rows[2];
  for (int i = 0; i < kMicrobatches; ++i) {
    for (int stage = 0; stage < kStages; ++stage) {
      rows[stage % 2] += std::to_string(stage) + (stage % 2 == 0 ? "F" : "I") + std::to_string(i);
      rows[stage % 2] += ',';
    }
  }
  EXPECT_FALSE(verify(read(rows[0] + "\n" + rows[1])).right());
}

struct Mutant {
  Pipeline pipeline;
  bool may_be_right = false;
};

// Makes one change: drops, doubles or moves an action (or a whole overlap), or gives lanes one less
// capacity than they need.
Mutant mutate(Pipeline pipeline, std::mt19937& random) {
  const auto kind = random() % 5;
  if (kind == 0) {
    pipeline.lanes = 1 + static_cast<int>(random() % 2);
    const int least = verify(pipeline).least_capacity;
    pipeline.capacity = std::max(0, least - 1);
    return {std::move(pipeline), least == 0};
  }
  auto& actions = pipeline.actions[random() % pipeline.actions.size()];
  const auto starts = [&] {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < actions.size(); i = after(actions, i)) {
      places.push_back(i);
    }
    return places;
  };
  const auto any_of = [&](const std::vector<std::size_t>& places) {
    return static_cast<std::ptrdiff_t>(places[random() % places.size()]);
  };
  const std::ptrdiff_t from = any_of(starts());
  const auto end = static_cast<std::ptrdiff_t>(after(actions, static_cast<std::size_t>(from)));
  const std::vector<Action> moved(actions.begin() + from, actions.begin() + end);
  // Parameters without a RESHARD stay in memory, which is valid.
  const bool is_kept = kind == 2 && moved.front().kind == ActionKind::reshard;
  if (kind != 1) {
    actions.erase(actions.begin() + from, actions.begin() + end);
  }
  if (kind != 2) {
    actions.insert(actions.begin() + any_of(starts()), moved.begin(), moved.end());
  }
  return {std::move(pipeline), kind > 2 || is_kept};
}

// Adds the actions of a model with sharded parameters and copies on other ranks.
void add_stage_actions(Pipeline& pipeline) {
  Pipeline all = pipeline;
  all.actions.assign(all.actions.size(), {});
  for (int stage = 0; stage < pipeline.stages(); ++stage) {
    for (const ActionKind kind :
         {ActionKind::unshard, ActionKind::reduce_grad, ActionKind::reshard}) {
      all.actions[static_cast<std::size_t>(pipeline.stage_rank[static_cast<std::size_t>(stage)])]
          .push_back({kind, stage});
    }
  }
  copy_stage_actions(all, pipeline);
}

// Dropped and doubled actions are rejected, and so is a capacity that is too small. A moved action
// is rejected, or the pipeline still runs to its end.
TEST(PipelineVerify, MutantsAreRejectedOrRun) {
  std::mt19937 random(18);
  int rejected = 0;
  int harmless = 0;
  std::map<std::string_view, int> tried;
  while (rejected + harmless < 10000) {
    const Entry& entry = *catalog()[random() % catalog().size()];
    const PipelineSize shape{.ranks = 2 + static_cast<int>(random() % 3),
                             .chunks = entry.chunks == 0 ? 2 : entry.chunks,
                             .microbatches = 8};
    if (!refusal(entry, shape).empty()) {
      continue;
    }
    ++tried[entry.name];
    Pipeline pipeline = build(entry, shape);
    if (random() % 3 == 0) {
      add_stage_actions(pipeline);
      ASSERT_TRUE(verify(pipeline).right());
    }
    const Mutant mutant = mutate(std::move(pipeline), random);
    const Verdict verdict = verify(mutant.pipeline);
    if (!verdict.right()) {
      EXPECT_FALSE(sentence(verdict.findings.front()).empty());
      ++rejected;
      continue;
    }
    ASSERT_TRUE(mutant.may_be_right) << to_json(mutant.pipeline);
    ASSERT_TRUE(run(mutant.pipeline).finished()) << to_json(mutant.pipeline);
    ++harmless;
  }
  EXPECT_GT(rejected, 5000);
  EXPECT_GT(harmless, 500);
  for (const Entry* entry : catalog()) {
    EXPECT_GT(tried[entry->name], 500) << entry->name;
  }
}

TEST(PipelineVerify, OneLessThanTheLeastCapacityDoesNotWork) {
  int tried = 0;
  for (const Entry* entry : catalog()) {
    Pipeline pipeline = build(
        *entry, {.ranks = 4, .chunks = entry->chunks == 0 ? 2 : entry->chunks, .microbatches = 8});
    pipeline.lanes = 1;
    const int least = verify(pipeline).least_capacity;
    ASSERT_GE(least, 0) << entry->name;
    EXPECT_TRUE(run(pipeline, {.capacity = least}).finished());
    if (least > 0) {
      EXPECT_FALSE(run(pipeline, {.capacity = least - 1}).finished()) << entry->name;
      ++tried;
    }
  }
  EXPECT_GT(tried, 5);
}

}  // namespace
}  // namespace unisono::pipeline
