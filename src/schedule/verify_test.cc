// Hand-made wrong schedules, and the finding that each of them must give.
#include "schedule/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "schedule/cells.h"
#include "schedule/dependencies.h"

namespace unisono {
namespace {

using Place = MoveSpec::Place;
using Kind = Finding::Kind;

std::string texts(const std::vector<Finding>& findings) {
  std::string result;
  for (const Finding& finding : findings) {
    result += to_text(finding, 0) + "\n";
  }
  return result;
}

// Each rank sends its vector to the other rank, which adds it.
Schedule exchange() {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 2, .chunks = 1}};
  builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  return std::move(builder).build();
}

Schedule broadcast_to_two() {
  ScheduleBuilder builder{Collective::broadcast, {.ranks = 3, .chunks = 2}};
  builder.step();
  builder.move({.from = 0, .to = 1, .chunks = 2});
  builder.step();
  builder.move({.from = 1, .to = 2, .chunks = 2});
  return std::move(builder).build();
}

TEST(Verify, AcceptsWhatIsRight) {
  EXPECT_EQ(texts(verify(exchange())), "");
  EXPECT_EQ(texts(verify(broadcast_to_two())), "");
  EXPECT_EQ(texts(verify_in_place(exchange())), "");
}

TEST(Verify, AcceptsOneRankWithoutMoves) {
  for (int i = 0; i < kCollectiveCount; ++i) {
    Schedule schedule;
    schedule.collective = static_cast<Collective>(i);
    EXPECT_EQ(texts(verify(schedule)), "") << to_string(schedule.collective);
    EXPECT_EQ(texts(verify_in_place(schedule)), "") << to_string(schedule.collective);
  }
}

TEST(Verify, TellsTheKindAndTheLine) {
  Schedule schedule = exchange();
  schedule.moves[1].step = 1;
  schedule.steps = 2;
  const std::vector<Finding> findings = verify(schedule);
  ASSERT_EQ(findings.size(), 1U) << texts(findings);
  EXPECT_EQ(to_text(findings[0], 0), "step 1: rank 0 counted twice at rank 0 chunk 0");
  EXPECT_EQ(findings[0].kind, Kind::data_flow);
  EXPECT_EQ(findings[0].step, 1);
  EXPECT_EQ(findings[0].rank, 0);
  EXPECT_EQ(findings[0].chunk, 0);
  EXPECT_EQ(findings[0].line, schedule.moves[1].line);
}

struct Structure {
  const char* name;
  void (*spoil)(Schedule& schedule);
  const char* text;
};

class WrongStructure : public testing::TestWithParam<Structure> {};

TEST_P(WrongStructure, IsFoundFirst) {
  Schedule schedule = broadcast_to_two();
  GetParam().spoil(schedule);
  for (const auto& findings : {verify(schedule), verify_in_place(schedule)}) {
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(to_text(findings[0], 0), GetParam().text);
    EXPECT_EQ(findings[0].kind, Kind::structure);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongStructure,
    testing::Values(
        Structure{"ranks", [](Schedule& s) { s.ranks = 0; }, "shape: 0 ranks, 2 chunks, 2 steps"},
        Structure{"root", [](Schedule& s) { s.root = 3; }, "shape: root 3 of 3 ranks"},
        Structure{"root_of_unrooted",
                  [](Schedule& s) {
                    s.collective = Collective::all_gather;
                    s.chunks = 3;
                    s.root = 1;
                  },
                  "shape: root 1 of 3 ranks"},
        Structure{"groups", [](Schedule& s) { s.collective = Collective::gather; },
                  "shape: 2 chunks are not a multiple of 3"},
        Structure{"pairs",
                  [](Schedule& s) {
                    s.collective = Collective::all_to_all_v;
                    s.chunks = 3;
                  },
                  "shape: 3 chunks are not a multiple of 9"},
        Structure{"barrier", [](Schedule& s) { s.collective = Collective::barrier; },
                  "shape: a barrier has 1 chunk, not 2"},
        Structure{"from", [](Schedule& s) { s.moves[0].from = -1; },
                  "step 0: move -1->1: there are 3 ranks"},
        Structure{"to", [](Schedule& s) { s.moves[1].to = 3; },
                  "step 1: move 1->3: there are 3 ranks"},
        Structure{"chunk", [](Schedule& s) { s.moves[1].chunk = 1; },
                  "step 1: move 1->2: chunks 1+2 of 2"},
        Structure{"negative_chunk", [](Schedule& s) { s.moves[1].chunk = -1; },
                  "step 1: move 1->2: chunks -1+2 of 2"},
        Structure{"chunks", [](Schedule& s) { s.moves[1].chunks = 0; },
                  "step 1: move 1->2: chunks 0+0 of 2"},
        Structure{"chunk_overflow", [](Schedule& s) { s.moves[0].chunks = 2147483647; },
                  "step 0: move 0->1: chunks 0+2147483647 of 2"},
        Structure{"step", [](Schedule& s) { s.moves[1].step = 2; },
                  "step 2: move 1->2: step is out of order or beyond the 2 steps"},
        Structure{"order", [](Schedule& s) { std::swap(s.moves[0].step, s.moves[1].step); },
                  "step 0: move 1->2: step is out of order or beyond the 2 steps"},
        Structure{"input", [](Schedule& s) { s.moves[0].target = Buffer::input; },
                  "step 0: move 0->1 writes the input"},
        Structure{"reduce", [](Schedule& s) { s.moves[0].combine = Combine::reduce; },
                  "step 0: move 0->1 reduces, but broadcast does not"},
        Structure{"itself", [](Schedule& s) { s.moves[0].to = 0; },
                  "step 0: move 0->0 moves cells onto themselves"},
        Structure{"phase", [](Schedule& s) { s.phases = {{.name = "late", .first_step = 2}}; },
                  "phase late: first step 2 is out of order or beyond the 2 steps"},
        Structure{"target_without_output",
                  [](Schedule& s) {
                    s.collective = Collective::scatter;
                    s.chunks = 3;
                    s.moves[0].chunk = 1;
                    s.moves[0].source = Buffer::input;
                  },
                  "step 0: rank 1 has no output chunk 2"},
        Structure{"source_without_output",
                  [](Schedule& s) {
                    s.collective = Collective::scatter;
                    s.chunks = 3;
                    s.moves[0].chunk = 1;
                  },
                  "step 0: rank 0 has no output chunk 1"}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(Verify, RefusesWhatIsTooLargeToFollow) {
  Schedule schedule;
  schedule.collective = Collective::broadcast;
  schedule.ranks = 2;
  schedule.chunks = 1 << 24;
  schedule.steps = 17;
  for (int step = 0; step < 17; ++step) {
    schedule.moves.push_back({.step = step, .from = 0, .to = 1, .chunks = schedule.chunks});
  }
  schedule.moves[0].source = Buffer::input;
  for (Move& move : schedule.moves) {
    move.source = Buffer::input;
    move.target = Buffer::scratch;
  }
  const std::vector<Finding> findings = verify(schedule);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(to_text(findings[0], 0), "shape: more than 2^28 chunks are moved: too large to verify");
}

TEST(DataFlow, FindsWhatIsMissingAtTheEnd) {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 4, .chunks = 4}};
  builder.move({.from = 3, .to = 2, .chunk = 3, .combine = Combine::reduce});
  const std::vector<Finding> findings = verify(std::move(builder).build());
  EXPECT_NE(texts(findings).find("end: chunk 3 lacks ranks 0 1 on rank 2\n"), std::string::npos)
      << texts(findings);
  EXPECT_EQ(findings.size(), 16U);
}

TEST(DataFlow, FindsAMissingPart) {
  Schedule schedule = broadcast_to_two();
  schedule.moves[1].chunks = 1;
  EXPECT_EQ(texts(verify(schedule)), "end: chunk 1 lacks rank 0 on rank 2\n");
}

TEST(DataFlow, FindsReplacedContributions) {
  Schedule schedule = exchange();
  schedule.moves[0].combine = Combine::replace;
  EXPECT_EQ(texts(verify(schedule)), "end: chunk 0 lacks rank 1 on rank 1\n");
}

// Doubling 8 times overflows a counter of 8 bits, which must not return to zero.
TEST(DataFlow, CountsDoNotWrapAround) {
  ScheduleBuilder builder{Collective::barrier, {.ranks = 2, .chunks = 1}};
  for (int i = 0; i < 9; ++i) {
    builder.step();
    builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
    builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
    EXPECT_EQ(texts(verify(ScheduleBuilder(builder).build())), "") << i;
  }
}

TEST(DataFlow, CountsABarriersTokensAtLeastOnce) {
  ScheduleBuilder builder{Collective::barrier, {.ranks = 2, .chunks = 1}};
  for (int i = 0; i < 2; ++i) {
    builder.step();
    builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
    builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  }
  Schedule schedule = std::move(builder).build();
  EXPECT_EQ(texts(verify(schedule)), "");
  schedule.moves = {schedule.moves[0], schedule.moves[2]};
  EXPECT_EQ(texts(verify(schedule)), "end: chunk 0 lacks rank 1 on rank 0\n");
}

TEST(Hazards, FindsAReadOfWhatNobodyWrote) {
  Schedule schedule = broadcast_to_two();
  schedule.moves[1].step = 0;  // reads come before writes
  const std::vector<Finding> findings = verify(schedule);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(to_text(findings[0], 0),
            "step 0: rank 1 reads chunk 0 of its output, which nobody wrote");
  EXPECT_EQ(findings[0].kind, Kind::hazard);
}

TEST(Hazards, FindsAReadOfAnInputThatIsNotThere) {
  Schedule schedule = broadcast_to_two();
  schedule.moves[1].source = Buffer::input;
  const std::vector<Finding> findings = verify(schedule);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(to_text(findings[0], 0), "step 1: rank 1 reads chunk 0 of its input, which it has not");
}

TEST(Hazards, FindsTwoWritesThatMeet) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 3, .chunks = 1}};
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  builder.move({.from = 2, .to = 0, .combine = Combine::reduce});
  const std::vector<Finding> findings = verify(std::move(builder).build());
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(to_text(findings[0], 0), "step 0: two moves write the output of rank 0 chunk 0");
  EXPECT_EQ(findings[0].kind, Kind::hazard);
}

// Two ranks swap two chunks in one step, but send them in opposite orders. Each rank can take the
// first message only after it has sent its second one, for which the lane is full.
Schedule crossed_swap() {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 2, .chunks = 2}};
  builder.move({.from = 0, .to = 1, .chunk = 0, .combine = Combine::reduce});
  builder.move({.from = 0, .to = 1, .chunk = 1, .combine = Combine::reduce});
  builder.move({.from = 1, .to = 0, .chunk = 1, .combine = Combine::reduce});
  builder.move({.from = 1, .to = 0, .chunk = 0, .combine = Combine::reduce});
  Schedule schedule = std::move(builder).build();
  // Goes through scratch that was written before, so that the reads do not yield the input.
  for (Move& move : schedule.moves) {
    move.step = 1;
    move.source = Buffer::scratch;
    move.target = Buffer::scratch;
  }
  schedule.steps = 3;
  for (const int rank : {0, 1}) {
    schedule.moves.insert(schedule.moves.begin(), {.step = 0,
                                                   .from = rank,
                                                   .to = rank,
                                                   .chunks = 2,
                                                   .source = Buffer::input,
                                                   .target = Buffer::scratch});
    schedule.moves.push_back({.step = 2,
                              .from = rank,
                              .to = rank,
                              .chunks = 2,
                              .source = Buffer::scratch,
                              .target = Buffer::output});
  }
  return schedule;
}

TEST(Progress, FindsRanksThatWaitForEachOther) {
  const std::vector<Finding> findings = verify(crossed_swap());
  ASSERT_EQ(findings.size(), 2U) << texts(findings);
  EXPECT_EQ(to_text(findings[0], 0),
            "step 1: rank 1 cannot receive chunk 0 from rank 0: waits for ever with one message a "
            "lane");
  EXPECT_EQ(to_text(findings[1], 0),
            "step 1: rank 0 cannot send chunk 1 to rank 1: waits for ever with one message a lane");
  EXPECT_EQ(findings[0].kind, Kind::progress);
}

TEST(Progress, AcceptsTheSameSwapInOneOrder) {
  Schedule schedule = crossed_swap();
  std::swap(schedule.moves[4], schedule.moves[5]);
  EXPECT_EQ(texts(verify(schedule)), "");
}

TEST(Progress, FindsALocalSwap) {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 1, .chunks = 1}};
  builder.step();
  builder.move({.source = Place::input, .target = Place::scratch});
  builder.move({.source = Place::input, .target = Place::output});
  builder.step();
  builder.move({.source = Place::scratch, .target = Place::output});
  builder.move({.source = Place::output, .target = Place::scratch});
  EXPECT_EQ(texts(verify(std::move(builder).build())),
            "step 1: rank 0 cannot copy chunk 0: waits for ever with one message a lane\n");
}

TEST(InPlace, FindsAnInputWhosePlaceIsTaken) {
  // Rank 0 receives (1,0) onto (0,1) before it has sent (0,1).
  ScheduleBuilder builder{Collective::all_to_all, {.ranks = 2, .chunks = 4}};
  builder.step();
  builder.move({.from = 1, .to = 0, .chunk = 2});
  builder.step();
  builder.move({.from = 0, .to = 1, .chunk = 1});
  Schedule schedule = std::move(builder).build();
  EXPECT_EQ(texts(verify(schedule)), "");
  const std::vector<Finding> findings = verify_in_place(schedule);
  ASSERT_EQ(findings.size(), 1U) << texts(findings);
  EXPECT_EQ(to_text(findings[0], 0),
            "step 1: rank 0 reads its input chunk 1, whose place output chunk 2 took in step 0");
  EXPECT_EQ(findings[0].kind, Kind::in_place);
  schedule.moves[1].step = 0;
  EXPECT_EQ(texts(verify_in_place(schedule)), "");
}

TEST(InPlace, FindsAnInputThatIsReadAfterItsOutput) {
  ScheduleBuilder builder{Collective::all_reduce, {.ranks = 2, .chunks = 1}};
  builder.step();
  builder.move({.from = 0, .to = 1, .combine = Combine::reduce});
  builder.step();
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce, .source = Place::input});
  const Schedule schedule = std::move(builder).build();
  EXPECT_EQ(texts(verify(schedule)), "");
  EXPECT_EQ(texts(verify_in_place(schedule)),
            "step 1: rank 1 reads its input chunk 0, whose place output chunk 0 took in step 0\n");
}

// The steps are correct; but in place, each rank must send a chunk before it receives that chunk.
TEST(InPlace, FindsRanksThatWaitForEachOther) {
  ScheduleBuilder builder{Collective::all_to_all, {.ranks = 2, .chunks = 8}};
  builder.step();
  builder.move({.from = 0, .to = 1, .chunk = 2});  // (0,1,0)
  builder.move({.from = 0, .to = 1, .chunk = 3});
  builder.move({.from = 1, .to = 0, .chunk = 5});  // (1,0,1)
  builder.move({.from = 1, .to = 0, .chunk = 4});
  Schedule schedule = std::move(builder).build();
  EXPECT_EQ(texts(verify(schedule)), "");
  const std::vector<Finding> findings = verify_in_place(schedule);
  ASSERT_EQ(findings.size(), 2U) << texts(findings);
  EXPECT_EQ(
      to_text(findings[0], 0),
      "step 0: rank 1 cannot receive chunk 2 from rank 0: waits for ever with one message a lane, "
      "in place");
  std::swap(schedule.moves[2], schedule.moves[3]);
  EXPECT_EQ(texts(verify_in_place(schedule)), "");
}

TEST(InPlace, PutsOutputsOnInputs) {
  Schedule schedule;
  schedule.ranks = 3;
  schedule.chunks = 18;
  schedule.collective = Collective::all_to_all;
  EXPECT_EQ(chunk_in_place(schedule, 1, 11), 15);  // (1,2,1) -> (2,1,1)
  EXPECT_EQ(chunk_in_place(schedule, 0, 11), -1);
  schedule.collective = Collective::reduce_scatter;
  EXPECT_EQ(chunk_in_place(schedule, 1, 6), 6);
  EXPECT_EQ(chunk_in_place(schedule, 1, 5), -1);
  schedule.collective = Collective::scatter;
  schedule.root = 2;
  EXPECT_EQ(chunk_in_place(schedule, 2, 12), 12);
  EXPECT_EQ(chunk_in_place(schedule, 2, 0), -1);
}

std::vector<std::uint32_t> of(const Dependencies& dependencies, std::uint32_t event) {
  const auto events = dependencies.of(event);
  return {events.begin(), events.end()};
}

TEST(Dependencies, AreReadAfterWriteAndWriteAfterRead) {
  const Dependencies chain = dependencies(broadcast_to_two());
  EXPECT_TRUE(of(chain, read_event(0)).empty());
  EXPECT_EQ(of(chain, read_event(1)), std::vector{write_event(0)});

  // Out of place the outputs read as inputs, so there is nothing to wait for.
  const Dependencies apart = dependencies(exchange());
  EXPECT_TRUE(apart.events.empty());
  // In place, each rank must send its vector before the other rank's vector is added to it.
  const Dependencies together = dependencies(exchange(), Aliasing::in_place);
  EXPECT_EQ(of(together, write_event(0)), std::vector{read_event(1)});
  EXPECT_EQ(of(together, write_event(1)), std::vector{read_event(0)});
}

TEST(Dependencies, ChainTheWritesOfOneCell) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 3, .chunks = 1}};
  builder.step();
  builder.move({.from = 1, .to = 0, .combine = Combine::reduce});
  builder.step();
  builder.move({.from = 2, .to = 0, .combine = Combine::reduce});
  const Dependencies chain = dependencies(std::move(builder).build());
  EXPECT_EQ(of(chain, write_event(1)), std::vector{write_event(0)});
  EXPECT_TRUE(of(chain, read_event(1)).empty());
}

}  // namespace
}  // namespace unisono
