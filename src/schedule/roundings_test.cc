// Counts the roundings in hand-made schedules.
#include "schedule/roundings.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "schedule/verify.h"

namespace unisono {
namespace {

std::string texts(const Schedule& schedule) {
  std::string all;
  for (const RoundingFault& fault : check_roundings(schedule)) {
    all += fault.what + " in step " + std::to_string(fault.step) + ", chunk " +
           std::to_string(fault.chunk) + "\n";
  }
  return all;
}

Schedule two_shot_of_two() {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 2, .chunks = 2}};
  builder.step();
  builder.move({.from = 0, .to = 1, .chunk = 1, .combine = Combine::reduce});
  builder.move({.from = 1, .to = 0, .chunk = 0, .combine = Combine::reduce});
  builder.phase("all_gather");
  builder.step();
  builder.move({.from = 0, .to = 1, .chunk = 0});
  builder.move({.from = 1, .to = 0, .chunk = 1});
  return std::move(builder).build();
}

constexpr int kApart[] = {0, 1, 2, 3};

TEST(Roundings, NothingIsRoundedWhereNothingIsEncoded) {
  EXPECT_EQ(texts(two_shot_of_two()), "");
  const int together[] = {7, 7};
  const Schedule schedule = encode_moves(two_shot_of_two(), together, MoveCode::i8);
  EXPECT_EQ(schedule.moves, two_shot_of_two().moves);
}

TEST(Roundings, OwnersRoundTheirOwnBeforeTheySendIt) {
  const Schedule schedule = encode_moves(two_shot_of_two(), kApart, MoveCode::i8);
  EXPECT_EQ(texts(schedule), "");
  ASSERT_EQ(verify(schedule).size(), 0U);
  ASSERT_EQ(schedule.moves.size(), 6U);
  EXPECT_EQ(schedule.steps, 3);
  EXPECT_EQ(schedule.phases.back().first_step, 2);
  for (int i = 2; i < 4; ++i) {
    const Move& move = schedule.moves[static_cast<std::size_t>(i)];
    EXPECT_EQ(move.step, 1);
    EXPECT_EQ(move.from, move.to);
    EXPECT_EQ(move.code, MoveCode::i8);
  }
}

TEST(Roundings, AResultThatIsPassedOnIsNotRoundedAgain) {
  ScheduleBuilder builder{Collective::broadcast, {.ranks = 3, .chunks = 1}};
  builder.step();
  builder.move({.from = 0, .to = 1});
  builder.step();
  builder.move({.from = 1, .to = 2});
  Schedule schedule = std::move(builder).build();
  schedule.moves[0].code = schedule.moves[1].code = MoveCode::i8;
  EXPECT_EQ(texts(schedule), "ranks 0 and 1 end with other bits in step -1, chunk 0\n");
  schedule.moves[1].code = MoveCode::bf16;  // another grid
  EXPECT_EQ(texts(schedule),
            "the result is rounded twice on its way from rank 1 to rank 2 in step 1, chunk 0\n"
            "ranks 0 and 1 end with other bits in step -1, chunk 0\n");
}

TEST(Roundings, APartialSumThatGoesOnIsRoundedTwice) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 3, .chunks = 1}};
  builder.step();
  builder.move({.from = 2, .to = 1, .combine = Combine::reduce});
  builder.step();
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  const Schedule schedule = encode_moves(std::move(builder).build(), kApart, MoveCode::i8);
  EXPECT_EQ(texts(schedule),
            "an input is rounded twice on its way from rank 1 to rank 0 in step 1, chunk 0\n");
}

Schedule sum_at_0_of_3(std::initializer_list<std::pair<int, int>> spread) {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 3, .chunks = 1}};
  for (int rank = 1; rank < 3; ++rank) {
    builder.step();
    builder.move({.from = rank, .to = 0, .combine = Combine::reduce});
  }
  for (const auto& [from, to] : spread) {
    builder.step();
    builder.move({.from = from, .to = to});
  }
  return std::move(builder).build();
}

TEST(Roundings, AResultIsRoundedBeforeAnybodyReadsIt) {
  const int hosts[] = {0, 0, 1};  // rank 1 gets it as it is then
  const Schedule schedule = encode_moves(sum_at_0_of_3({{0, 1}, {0, 2}}), hosts, MoveCode::i8);
  EXPECT_EQ(texts(schedule), "");
  EXPECT_EQ(schedule.moves[2].from, schedule.moves[2].to);
  EXPECT_EQ(schedule.moves[2].step, 2);
  EXPECT_EQ(schedule.moves[3].to, 1);
  EXPECT_EQ(schedule.moves[3].code, MoveCode::none);
}

TEST(Roundings, WhoeverHandsItsResultToOneThatRoundsItHasOtherBits) {
  const int hosts[] = {0, 0, 1};
  const Schedule schedule = encode_moves(sum_at_0_of_3({{0, 1}, {1, 2}}), hosts, MoveCode::i8);
  EXPECT_EQ(texts(schedule), "ranks 0 and 1 end with other bits in step -1, chunk 0\n");
}

}  // namespace
}  // namespace unisono
