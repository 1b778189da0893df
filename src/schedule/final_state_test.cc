#include "schedule/final_state.h"

#include <gtest/gtest.h>

#include <utility>

namespace unisono {
namespace {

Schedule swap_of_two() {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 2, .chunks = 1}};
  builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  return std::move(builder).build();
}

TEST(FinalState, IsTheHashThatTheHeaderDescribes) {
  // On both ranks the output is written and contains each part once; scratch is not written.
  std::uint32_t hash = 2166136261;
  for (const unsigned byte : {1U, 1U, 1U, 0U, 1U, 1U, 1U, 0U}) {
    hash = (hash ^ byte) * 16777619;
  }
  EXPECT_EQ(final_state_hash(swap_of_two()), hash);
  EXPECT_EQ(final_state_text(swap_of_two()).size(), 8U);
}

TEST(FinalState, DoesNotDependOnTheWayThere) {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 2, .chunks = 1}};
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  builder.step();
  builder.step();
  builder.move({.from = 0, .to = 1});
  EXPECT_EQ(final_state_hash(std::move(builder).build()), final_state_hash(swap_of_two()));
}

TEST(FinalState, TellsWrongResultsApart) {
  Schedule lost = swap_of_two();
  lost.moves.pop_back();
  Schedule replaced = swap_of_two();
  replaced.moves.back().combine = Combine::replace;
  EXPECT_NE(final_state_hash(lost), final_state_hash(swap_of_two()));
  EXPECT_NE(final_state_hash(replaced), final_state_hash(swap_of_two()));
  EXPECT_NE(final_state_hash(replaced), final_state_hash(lost));
}

}  // namespace
}  // namespace unisono
