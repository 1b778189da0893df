#include "cost/cost.h"

#include <gtest/gtest.h>

#include <utility>

#include "algorithms/catalog.h"

namespace unisono::cost {
namespace {

using Place = MoveSpec::Place;

// Powers of two, so that sums are exact, and far apart, so that each time has only one
// decomposition.
constexpr Parameters kNetwork{
    .floor_s = 0, .alpha_s = 1048576, .beta_s_per_byte = 1024, .gamma_s_per_byte = 1};

void expect_path(const Schedule& schedule, double vector_bytes, const Cost& expected,
                 const Parameters& parameters = kNetwork) {
  const Cost cost = critical_path(schedule, vector_bytes, parameters);
  EXPECT_EQ(cost.messages, expected.messages);
  EXPECT_EQ(cost.bytes, expected.bytes);
  EXPECT_EQ(cost.reduced_bytes, expected.reduced_bytes);
}

TEST(CriticalPath, OfNothingIsTheFloor) {
  const Schedule schedule =
      std::move(ScheduleBuilder{Collective::broadcast, {.ranks = 1, .chunks = 1}}).build();
  expect_path(schedule, 64, {});
  EXPECT_EQ(critical_path(schedule, 64, kNetwork).time_s({.floor_s = 3}), 3);
}

TEST(CriticalPath, SerialisesWhatOneRankSends) {
  ScheduleBuilder builder{Collective::broadcast, {.ranks = 4, .chunks = 1}};
  builder.step();
  for (int to = 1; to < 4; ++to) {
    builder.move({.from = 0, .to = to});
  }
  expect_path(std::move(builder).build(), 64, {.messages = 3, .bytes = 192});
}

TEST(CriticalPath, SerialisesWhatOneRankReceivesAndReduces) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 4, .chunks = 1}};
  builder.step();
  for (int from = 1; from < 4; ++from) {
    builder.move({.from = from, .to = 0, .combine = Combine::reduce});
  }
  expect_path(std::move(builder).build(), 64, {.messages = 3, .bytes = 192, .reduced_bytes = 192});
}

TEST(CriticalPath, OfCountsTakesTheirSizes) {
  Schedule schedule =
      build_schedule(*find_algorithm(Collective::all_to_all, "pairwise"), {.ranks = 2});
  schedule.counts = {.element_bytes = 16, .send = {{9, 4}, {1, 9}}};
  expect_path(schedule, 1e9, {.messages = 1, .bytes = 64});
  const Traffic moved = traffic(schedule, 1e9);
  EXPECT_EQ(moved.sent_bytes, 64);
  EXPECT_EQ(moved.total_bytes, 80);
}

TEST(CriticalPath, LetsARankSendAndReceiveAtOnce) {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 2, .chunks = 1}};
  builder.step();
  builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  expect_path(std::move(builder).build(), 64, {.messages = 1, .bytes = 64, .reduced_bytes = 64});
}

TEST(CriticalPath, FreesTheSenderBeforeTheReceiverHasReduced) {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 3, .chunks = 1}};
  builder.step();
  builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
  builder.move({.from = 0, .to = 2, .combine = Combine::reduce});
  // Rank 0 starts the second message after 1 * (alpha + beta). gamma counts only once.
  expect_path(std::move(builder).build(), 64, {.messages = 2, .bytes = 128, .reduced_bytes = 64});
}

TEST(CriticalPath, JoinsTheMovesOfAStepBetweenTwoRanksToOneMessage) {
  ScheduleBuilder builder{Collective::broadcast, {.ranks = 3, .chunks = 4}};
  builder.step();
  builder.move({.from = 0, .to = 1, .chunk = 0});
  builder.move({.from = 0, .to = 2, .chunk = 0, .chunks = 4});
  builder.move({.from = 0, .to = 1, .chunk = 1, .chunks = 3});
  expect_path(std::move(builder).build(), 64, {.messages = 2, .bytes = 128});
}

TEST(CriticalPath, WaitsForTheDataOfEarlierStepsOnly) {
  // In step 0 rank 1 sends its own input while it receives, because reads come before writes. In
  // step 1 it forwards what it received.
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 3, .chunks = 1}};
  builder.step();
  builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
  builder.move({.from = 1, .to = 2, .combine = Combine::reduce});
  ScheduleBuilder longer = builder;
  expect_path(std::move(builder).build(), 64, {.messages = 1, .bytes = 64, .reduced_bytes = 64});
  longer.step();
  longer.move({.from = 1, .to = 2});
  expect_path(std::move(longer).build(), 64, {.messages = 2, .bytes = 128, .reduced_bytes = 64});
}

TEST(CriticalPath, CopiesForNothingAndReducesLocallyForGamma) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 2, .chunks = 1}};
  builder.step();
  builder.move({.from = 1, .to = 0, .target = Place::scratch});
  builder.step();
  builder.move({.from = 0,
                .to = 0,
                .combine = Combine::reduce,
                .source = Place::input,
                .target = Place::scratch});
  builder.step();
  builder.move({.from = 0, .to = 0, .source = Place::scratch, .target = Place::output});
  expect_path(std::move(builder).build(), 64, {.messages = 1, .bytes = 64, .reduced_bytes = 64});
}

TEST(CriticalPath, ChoosesTheLongerChainByTheParameters) {
  // The path 0 -> 1 -> 2 has small messages, 3 -> 4 has one large message.
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 5, .chunks = 8}};
  builder.step();
  builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
  builder.move({.from = 3, .to = 4, .chunks = 8, .combine = Combine::reduce});
  builder.step();
  builder.move({.from = 1, .to = 2});
  const Schedule schedule = std::move(builder).build();
  expect_path(schedule, 64, {.messages = 2, .bytes = 16, .reduced_bytes = 8});
  expect_path(schedule, 64, {.messages = 1, .bytes = 64, .reduced_bytes = 64},
              {.alpha_s = 1, .beta_s_per_byte = 1});
}

TEST(CriticalPath, TakesTheChunksOfEachCollective) {
  const auto path = [](Collective collective, std::string_view name) {
    return critical_path(build_schedule(*find_algorithm(collective, name), {.ranks = 4}), 64,
                         kNetwork);
  };
  EXPECT_EQ(path(Collective::all_gather, "ring").bytes, 48);
  EXPECT_EQ(path(Collective::all_to_all, "pairwise").bytes, 48);
  EXPECT_EQ(path(Collective::all_reduce, "ring").bytes, 96);
  EXPECT_EQ(path(Collective::all_reduce, "ring").reduced_bytes, 48);
  const Cost barrier = path(Collective::barrier, "dissemination");
  EXPECT_EQ(barrier.messages, 2);
  EXPECT_EQ(barrier.bytes, 0);
}

TEST(Traffic, CountsTheBusiestRankAndAllRanks) {
  const Schedule flat = build_schedule(*find_algorithm(Collective::reduce, "flat"), {.ranks = 4});
  const Traffic reduce = traffic(flat, 64);
  EXPECT_EQ(reduce.steps, 5);
  EXPECT_EQ(reduce.sent_bytes, 64);
  EXPECT_EQ(reduce.received_bytes, 192);
  EXPECT_EQ(reduce.reduced_bytes, 192);
  EXPECT_EQ(reduce.total_bytes, 192);
  const Schedule ring =
      build_schedule(*find_algorithm(Collective::all_reduce, "ring"), {.ranks = 4});
  EXPECT_EQ(traffic(ring, 64).sent_bytes, 96);
  EXPECT_EQ(traffic(ring, 64).total_bytes, 384);
}

}  // namespace
}  // namespace unisono::cost
