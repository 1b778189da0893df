#include "schedule/schedule.h"

#include <gtest/gtest.h>

#include <utility>

namespace unisono {
namespace {

using Place = MoveSpec::Place;

Schedule shape(Collective collective, int ranks, int chunks, int root = 0) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.ranks = ranks;
  schedule.chunks = chunks;
  schedule.root = root;
  return schedule;
}

TEST(Collectives, KnowTheirPlainForms) {
  EXPECT_EQ(plain_form(Collective::all_to_all_v), Collective::all_to_all);
  EXPECT_EQ(plain_form(Collective::broadcast), Collective::broadcast);
  EXPECT_TRUE(is_v_form(Collective::scatter_v));
  EXPECT_FALSE(is_v_form(Collective::scatter));
  EXPECT_TRUE(is_rooted(Collective::gather_v));
  EXPECT_FALSE(is_rooted(Collective::all_gather));
  EXPECT_TRUE(reduces(Collective::reduce_scatter_v));
  EXPECT_FALSE(reduces(Collective::barrier));
}

TEST(Collectives, SayWhoHasAndWhoNeedsAChunk) {
  const Schedule scatter = shape(Collective::scatter_v, 3, 6, 1);
  EXPECT_TRUE(has_input(scatter, 1, 5));
  EXPECT_FALSE(has_input(scatter, 2, 5));
  EXPECT_TRUE(needs_output(scatter, 2, 5));
  EXPECT_FALSE(needs_output(scatter, 2, 3));

  const Schedule gather = shape(Collective::gather, 3, 6, 1);
  EXPECT_TRUE(has_input(gather, 2, 4));
  EXPECT_TRUE(needs_output(gather, 1, 4));
  EXPECT_FALSE(needs_output(gather, 2, 4));

  // Chunk (s, d, j) of 3 ranks with 2 chunks a pair: (1, 2, 1) is 11.
  const Schedule exchange = shape(Collective::all_to_all, 3, 18);
  EXPECT_TRUE(has_input(exchange, 1, 11));
  EXPECT_FALSE(has_input(exchange, 2, 11));
  EXPECT_TRUE(needs_output(exchange, 2, 11));
  EXPECT_FALSE(needs_output(exchange, 1, 11));

  const Schedule reduce = shape(Collective::reduce, 3, 1, 2);
  EXPECT_TRUE(has_input(reduce, 0, 0));
  EXPECT_FALSE(needs_output(reduce, 0, 0));
}

TEST(Builder, TakesOutputsWhereTheyAreAndScratchElsewhere) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 3, .chunks = 1, .root = 0}};
  builder.step();
  builder.move({.from = 2, .to = 1, .combine = Combine::reduce});
  builder.step();
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  const Schedule schedule = std::move(builder).build();
  ASSERT_EQ(schedule.moves.size(), 2U);
  EXPECT_EQ(schedule.moves[0].source, Buffer::input);
  EXPECT_EQ(schedule.moves[0].target, Buffer::scratch);
  EXPECT_EQ(schedule.moves[1].source, Buffer::scratch);
  EXPECT_EQ(schedule.moves[1].target, Buffer::output);
}

TEST(Builder, DoesNotTakeScratchThatIsWrittenInTheSameStep) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 3, .chunks = 1, .root = 0}};
  builder.step();
  builder.move({.from = 2, .to = 1, .combine = Combine::reduce});
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  const Schedule schedule = std::move(builder).build();
  EXPECT_EQ(schedule.moves[1].source, Buffer::input);
}

TEST(Builder, SplitsARangeThatComesToDifferentPlaces) {
  ScheduleBuilder builder{Collective::scatter, {.ranks = 4, .chunks = 4, .root = 0}};
  builder.step();
  builder.move({.from = 0, .to = 2, .chunk = 1, .chunks = 3});
  const Schedule schedule = std::move(builder).build();
  ASSERT_EQ(schedule.moves.size(), 3U);
  EXPECT_EQ(schedule.moves[0].target, Buffer::scratch);
  EXPECT_EQ(schedule.moves[1].target, Buffer::output);
  EXPECT_EQ(schedule.moves[1].chunk, 2);
  EXPECT_EQ(schedule.moves[2].target, Buffer::scratch);
}

TEST(Builder, ObeysExplicitPlaces) {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 2, .chunks = 1}};
  builder.move({.from = 0, .to = 1, .source = Place::input, .target = Place::scratch});
  const Schedule schedule = std::move(builder).build();
  EXPECT_EQ(schedule.moves[0].source, Buffer::input);
  EXPECT_EQ(schedule.moves[0].target, Buffer::scratch);
}

TEST(Builder, DropsWhatHasNoMoves) {
  ScheduleBuilder builder{Collective::broadcast, {.ranks = 2, .chunks = 1}};
  builder.phase("nothing before");
  builder.phase("send");
  builder.step();
  builder.move({.from = 0, .to = 1});
  builder.move({.from = 0, .to = 1, .chunks = 0});
  builder.phase("nothing after");
  builder.step();
  const Schedule schedule = std::move(builder).build();
  EXPECT_EQ(schedule.steps, 1);
  EXPECT_EQ(schedule.moves.size(), 1U);
  ASSERT_EQ(schedule.phases.size(), 1U);
  EXPECT_EQ(schedule.phases[0].name, "send");
}

TEST(Builder, RemembersTheLineOfEachMove) {
  ScheduleBuilder builder{Collective::broadcast, {.ranks = 3, .chunks = 1}};
  builder.move({.from = 0, .to = 1});
  builder.move({.from = 0, .to = 2});
  const Schedule schedule = std::move(builder).build();
  EXPECT_EQ(schedule.file, "src/schedule/schedule_test.cc");
  EXPECT_EQ(schedule.moves[1].line, schedule.moves[0].line + 1);
}

TEST(Builder, TakesLinesOfAnotherLanguage) {
  ScheduleBuilder builder{Collective::all_gather, {.ranks = 2, .chunks = 2}};
  builder.in_file("mine.py");
  builder.step();
  builder.move_of_line({.from = 0, .to = 1, .chunk = 0}, 17);
  const Schedule schedule = std::move(builder).build();
  EXPECT_EQ(schedule.file, "mine.py");
  EXPECT_EQ(schedule.moves.at(0).line, 17U);
}

}  // namespace
}  // namespace unisono
