#include "pipeline/make.h"

#include <gtest/gtest.h>

#include <random>

#include "pipeline/catalog.h"
#include "pipeline/run.h"
#include "pipeline/text.h"
#include "pipeline/verify.h"

namespace unisono::pipeline {
namespace {

double largest(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

Pipeline entry_of(std::string_view name, int ranks, int microbatches) {
  const Entry& entry = *find_entry(name);
  return build(entry, {.ranks = ranks,
                       .chunks = entry.chunks == 0 ? 2 : entry.chunks,
                       .microbatches = microbatches});
}

// Varies the times of the stages by up to `share`.
void make_uneven(Pipeline& pipeline, double share, unsigned seed) {
  std::mt19937 random(seed);
  for (std::size_t stage = 0; stage < pipeline.stage_rank.size(); ++stage) {
    const double factor = 1 - share / 2 + share * static_cast<double>(random() % 1001) / 1000;
    pipeline.costs.forward[stage] *= factor;
    pipeline.costs.input[stage] *= factor;
    pipeline.costs.weight[stage] *= factor;
  }
}

// Returns the result of make() within the memory of the schedule that it starts from.
Made made_of(const Pipeline& frame, double work) {
  const Verdict before = verify(frame);
  const double most_bytes = largest(before.peak_bytes);
  Parsed<Made> made = make(frame, {.most_bytes = most_bytes, .work = work});
  EXPECT_TRUE(made) << made.message;
  EXPECT_GE(made.value->makespan, made.value->bound * (1 - 1e-9));
  const Verdict verdict = verify(made.value->pipeline);
  EXPECT_TRUE(verdict.right()) << sentence(verdict.findings.front());
  EXPECT_LE(largest(verdict.peak_bytes), most_bytes);
  EXPECT_NEAR(run(made.value->pipeline).makespan, made.value->makespan, 1e-9);
  EXPECT_LE(made.value->makespan, run(frame, {.capacity = kUnlimited}).makespan + 1e-9);
  return std::move(*made.value);
}

TEST(PipelineMake, IsNeverWorseThanWhatItStartsFrom) {
  for (const char* name : {"1f1b", "zb-h1", "zb-h2", "zbv", "v-half", "v-min", "interleaved",
                           "dualpipev", "dualpipe"}) {
    for (const int ranks : {1, 2, 4}) {
      SCOPED_TRACE(std::string(name) + " p=" + std::to_string(ranks));
      const Entry& entry = *find_entry(name);
      if (!refusal(
               entry,
               {.ranks = ranks, .chunks = entry.chunks == 0 ? 2 : entry.chunks, .microbatches = 8})
               .empty()) {
        continue;
      }
      for (unsigned seed = 0; seed < 3; ++seed) {
        Pipeline frame = entry_of(name, ranks, 8);
        if (seed > 0) {
          make_uneven(frame, 0.4, seed);
          frame.costs.transfer.assign(frame.stage_rank.size(), 0.1 * seed);
        }
        made_of(frame, 2e5);
      }
    }
  }
}

// If make() finds nothing better, least_makespan() proves that the input was optimal within the
// memory limit.
TEST(PipelineMake, IsBetterThanZbH1WhereStagesDiffer) {
  int bettered = 0;
  for (unsigned seed = 1; seed <= 18; ++seed) {
    Pipeline frame = entry_of("zb-h1", 8, 32);
    make_uneven(frame, 0.2, seed);
    const double before = run(frame, {.capacity = kUnlimited}).makespan;
    const Made made = made_of(frame, 1e7);
    EXPECT_TRUE(made.makespan < before || made.makespan <= made.bound + 1e-9);
    bettered += made.makespan < before ? 1 : 0;
    RecordProperty("percent_" + std::to_string(seed),
                   std::to_string(100 * (1 - made.makespan / before)));
  }
  EXPECT_GE(bettered, 15);
}

TEST(PipelineMake, ALimitThatNothingKeepsIsAnError) {
  const Parsed<Made> made = make(entry_of("1f1b", 4, 8), {.most_bytes = 0.5});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.message, "no order was found within the limit of 0.5 on each rank");
  EXPECT_TRUE(make(entry_of("1f1b", 4, 8), {.most_bytes = 1, .work = 1e5}));
  EXPECT_TRUE(make(entry_of("zbv", 4, 8), {.most_bytes = 2, .work = 1e5}));
}

// The memory kept between I and W may exceed the activation. A split B needs that memory; the
// unsplit B of the entry does not.
TEST(PipelineMake, AnEntryKeepsItsOwnLimitWhereItsPartsDoNot) {
  for (const char* name : {"naive", "1f1b", "dualpipe"}) {
    SCOPED_TRACE(name);
    Pipeline frame = entry_of(name, 2, 4);
    frame.memory.kept_bytes.assign(frame.stage_rank.size(), 1.25);
    const Made made = made_of(frame, 1e4);
    EXPECT_EQ(made.best_entry_makespan, run(frame, {.capacity = kUnlimited}).makespan);
  }
}

TEST(PipelineMake, TheWorkBoundsTheGreedyOrdersAsWell) {
  const Pipeline frame = entry_of("zb-h1", 1024, 1);
  EXPECT_EQ(made_of(frame, 1).makespan, run(frame).makespan);
}

TEST(PipelineMake, WhatIsDoneOnWholeStagesStays) {
  const Parsed<Pipeline> frame =
      parse_csv("0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD,0RESHARD\n1F0,1F1,1B0,1B1,1REDUCE_GRAD");
  ASSERT_TRUE(frame) << frame.message;
  const Parsed<Made> made = make(*frame.value, {.work = 1e4});
  ASSERT_TRUE(made) << made.message;
  EXPECT_TRUE(verify(made.value->pipeline).right());
  const std::string csv = to_csv(made.value->pipeline);
  EXPECT_TRUE(csv.starts_with("0UNSHARD,0F0,")) << csv;
  EXPECT_NE(csv.find(",0W1,0REDUCE_GRAD,0RESHARD\n1RECV_F0,1F0,"), std::string::npos) << csv;
  EXPECT_TRUE(csv.ends_with(",1REDUCE_GRAD\n")) << csv;
}

TEST(PipelineMake, TheSameArgumentsGiveTheSameOrder) {
  Pipeline frame = entry_of("zb-h1", 4, 8);
  make_uneven(frame, 0.3, 5);
  EXPECT_EQ(make(frame, {.work = 1e6}).value->pipeline, make(frame, {.work = 1e6}).value->pipeline);
}

}  // namespace
}  // namespace unisono::pipeline
