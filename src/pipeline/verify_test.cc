#include "pipeline/verify.h"

#include <gtest/gtest.h>

#include <random>

#include "pipeline/catalog.h"
#include "pipeline/json.h"
#include "pipeline/run.h"
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

// The order of https://github.com/pytorch/pytorch/issues/172668, made whole: each of two ranks
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
  pipeline.lanes = 2;  // forward and backward do not wait for each other
  EXPECT_EQ(verify(pipeline).least_capacity, 0);
}

TEST(PipelineVerify, RanksThatWaitInACircleAreNamed) {
  // Rank 0 does B of stage 0 before the F of stage 2 that its gradient comes from.
  EXPECT_EQ(
      first_finding("0F0,0B0,2F0,2B0\n1F0,1B0"),
      "rank 0 cannot begin 0B0, as 0RECV_B0 waits for rank 1, and rank 1 cannot begin 1B0, as "
      "1RECV_B0 waits for rank 0");
}

TEST(PipelineVerify, BytesAreThoseOfTheStages) {
  Pipeline pipeline = read("0F0,0F1,0I0,0I1,0W0,0W1");
  pipeline.memory = {.activation_bytes = {10}, .kept_bytes = {4}};
  EXPECT_EQ(verify(pipeline).peak_bytes, (std::vector<double>{20}));
  pipeline = read("0F0,0I0,0F1,0I1,0W0,0W1");
  pipeline.memory = {.activation_bytes = {10}, .kept_bytes = {4}};
  EXPECT_EQ(verify(pipeline).peak_bytes, (std::vector<double>{14}));
}

// An overlap holds what its F makes before its B frees anything, whichever is written first.
TEST(PipelineVerify, TheSpellingOfAnOverlapDoesNotChangeThePeak) {
  for (const char* csv : {"0F0,(0F1;0B0)OVERLAP_F_B,0B1", "0F0,(0B0;0F1)OVERLAP_F_B,0B1"}) {
    EXPECT_EQ(verify(read(csv)).peak_bytes, (std::vector<double>{2})) << csv;
    EXPECT_EQ(verify(read(csv)).peak_activations, (std::vector<int>{2})) << csv;
  }
}

// Every rank does the first of its two stages whole before the second, and so waits for the next
// rank, the last one for the first.
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

struct Mutant {
  Pipeline pipeline;
  bool may_be_right = false;
};

// One of: an action (or a whole overlap) dropped, doubled, moved, or lanes that hold one less than
// they have to.
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
  if (kind != 1) {
    actions.erase(actions.begin() + from, actions.begin() + end);
  }
  if (kind != 2) {
    actions.insert(actions.begin() + any_of(starts()), moved.begin(), moved.end());
  }
  return {std::move(pipeline), kind > 2};
}

// What is dropped or doubled is rejected, and so is a capacity that is too small; what is moved is
// rejected, or runs to its end.
TEST(PipelineVerify, MutantsAreRejectedOrRun) {
  std::mt19937 random(18);
  int rejected = 0;
  int harmless = 0;
  while (rejected + harmless < 10000) {
    const Entry& entry = *catalog()[random() % catalog().size()];
    const Shape shape{.ranks = 2 + static_cast<int>(random() % 3),
                      .chunks = entry.chunks == 0 ? 2 : entry.chunks,
                      .microbatches = 8};
    if (!refusal(entry, shape).empty()) {
      continue;
    }
    const Mutant mutant = mutate(build(entry, shape), random);
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
