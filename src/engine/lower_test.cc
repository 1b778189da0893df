// Known schedules after each step of lowering.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "algorithms/catalog.h"
#include "engine/bound_program.h"
#include "engine/program.h"
#include "schedule/verify.h"

namespace unisono::engine {
namespace {

Schedule schedule_of(Collective collective, const char* name, int ranks, int root = 0) {
  return build_schedule(*find_algorithm(collective, name), {.ranks = ranks, .root = root});
}

std::vector<Pass> passes_of(const Program& program, bool sends) {
  std::vector<Pass> some;
  std::copy_if(program.passes.begin(), program.passes.end(), std::back_inserter(some),
               [&](const Pass& pass) { return pass.send == sends; });
  return some;
}

TEST(Lower, RankOrderChainIsOnePassOverAllSources) {
  for (int rank = 0; rank < 5; ++rank) {
    const Program program = lower(schedule_of(Collective::all_reduce, "one_shot", 5), rank, {});
    const auto computes = passes_of(program, false);
    ASSERT_EQ(computes.size(), 1U);
    ASSERT_EQ(computes[0].sources.size(), 5U);
    for (int from = 0; from < 5; ++from) {
      const Operand& source = computes[0].sources[static_cast<std::size_t>(from)];
      EXPECT_EQ(source.place, from == rank ? OperandPlace::input : OperandPlace::lane);
      EXPECT_EQ(source.lane, from == rank ? -1 : 5 + from);
    }
    ASSERT_EQ(computes[0].targets.size(), 1U);
    EXPECT_EQ(computes[0].targets[0].place, OperandPlace::output);
    EXPECT_TRUE(std::none_of(program.scratch.begin(), program.scratch.end(),
                             [](bool used) { return used; }));
  }
}

TEST(Lower, RootOfAFlatReduceSumsInOnePass) {
  const Program program = lower(schedule_of(Collective::reduce, "flat", 4, 2), 2, {});
  ASSERT_EQ(program.passes.size(), 1U);
  EXPECT_EQ(program.passes[0].sources.size(), 4U);
}

TEST(Lower, OneCellToAllOthersIsOneMulticast) {
  const Schedule schedule = schedule_of(Collective::all_gather, "flat", 4);
  const auto sends = passes_of(lower(schedule, 1, {}), true);
  ASSERT_EQ(sends.size(), 1U);
  EXPECT_EQ(sends[0].targets[0].lane, 4);
  EXPECT_EQ(passes_of(lower(schedule, 1, {.multicast = false}), true).size(), 3U);
}

TEST(Lower, ARingForwardsWhatItReceives) {
  const Program program = lower(schedule_of(Collective::all_gather, "ring", 4), 1, {});
  int forwarding = 0;
  for (const Pass& pass : program.passes) {
    forwarding += pass.forwards.empty() ? 0 : 1;
    for (const int send : pass.forwards) {
      EXPECT_TRUE(program.passes[static_cast<std::size_t>(send)].send);
    }
  }
  EXPECT_EQ(forwarding, 2);  // all but the last of the three arrivals
}

TEST(Lower, AMiddleRankOfAReducingRingKeepsNoScratch) {
  const Program program = lower(schedule_of(Collective::reduce_scatter, "ring", 4), 0, {});
  for (const Pass& pass : program.passes) {
    if (!pass.send && pass.targets[0].place == OperandPlace::scratch) {
      EXPECT_TRUE(pass.transient);
    }
  }
}

TEST(Lower, NeighboursInMemoryTravelTogether) {
  const Schedule schedule = schedule_of(Collective::all_gather, "recursive_doubling", 8);
  const auto widest = [&](bool contiguous) {
    int chunks = 0;
    for (const Pass& pass : lower(schedule, 3, {.contiguous = contiguous}).passes) {
      chunks = std::max(chunks, pass.chunks);
    }
    return chunks;
  };
  EXPECT_EQ(widest(true), 3);  // the fourth is the sender's own, in its input
  EXPECT_EQ(widest(false), 1);
}

TEST(Lower, InPlaceAReceiveWaitsForTheSendOfWhatItOverwrites) {
  const Program program =
      lower(schedule_of(Collective::all_reduce, "recursive_doubling", 2), 0, {.in_place = true});
  ASSERT_EQ(program.passes.size(), 2U);
  ASSERT_TRUE(program.passes[0].send);
  ASSERT_EQ(program.passes[1].waits.size(), 1U);
  EXPECT_EQ(program.passes[1].waits[0].pass, 0);
  EXPECT_TRUE(program.passes[1].waits[0].drained);
  const Program apart = lower(schedule_of(Collective::all_reduce, "recursive_doubling", 2), 0, {});
  EXPECT_TRUE(apart.passes[1].waits.empty());
}

bool all_may_share(const Program& program) {
  return std::all_of(program.passes.begin(), program.passes.end(),
                     [](const Pass& pass) { return pass.may_share; });
}

TEST(Lower, MemoryThatTwoRanksSwapIsNotShown) {
  for (const char* name : {"one_shot", "recursive_doubling"}) {
    const Schedule schedule = schedule_of(Collective::all_reduce, name, 4);
    EXPECT_FALSE(all_may_share(lower(schedule, 1, {.in_place = true}))) << name;
  }
  EXPECT_TRUE(all_may_share(lower(schedule_of(Collective::all_reduce, "one_shot", 4), 1, {})));
  for (const char* name : {"flat", "ring", "halving_doubling"}) {
    const Schedule schedule = schedule_of(Collective::all_reduce, name, 4);
    EXPECT_TRUE(all_may_share(lower(schedule, 1, {.in_place = true}))) << name;
  }
}

// Rank 1 sends its own data and then forwards rank 2's data; both messages come through one lane.
TEST(Lower, TwoMessagesOfOneLaneStayTwoPasses) {
  ScheduleBuilder builder{Collective::reduce, {.ranks = 3, .chunks = 1}};
  builder.step();
  builder.move({.from = 1, .to = 0, .chunk = 0, .combine = Combine::reduce});
  builder.move({.from = 2, .to = 1, .chunk = 0, .target = MoveSpec::Place::scratch});
  builder.step();
  builder.move({.from = 1,
                .to = 0,
                .chunk = 0,
                .combine = Combine::reduce,
                .source = MoveSpec::Place::scratch});
  const Schedule schedule = std::move(builder).build();
  ASSERT_TRUE(verify(schedule).empty());
  for (const Pass& pass : lower(schedule, 0, {}).passes) {
    std::vector<int> lanes;
    for (const Operand& source : pass.sources) {
      if (source.place == OperandPlace::lane) {
        lanes.push_back(source.lane);
      }
    }
    EXPECT_LE(lanes.size(), 1U);
  }
}

TEST(Bind, MessagesWithoutBytesAreNotCounted) {
  const Schedule schedule = schedule_of(Collective::all_to_all, "flat", 2);
  Schedule v = schedule;
  v.collective = Collective::all_to_all_v;
  const std::vector<std::size_t> none = {0, 0};
  const std::vector<std::size_t> some = {0, 3};
  const auto places = lay_out(v, 0, {.element = 4, .counts = none, .recv_counts = some});
  const BoundProgram program =
      engine::bind(lower(v, 0, {.contiguous = false}), places, 4, extent_of(v, 0, places));
  std::size_t sent = 0;
  std::size_t received = 0;
  for (const BoundPass& pass : program.passes) {
    (pass.send ? sent : received) += pass.bytes;
    for (std::uint32_t i = pass.sources; i < pass.sources_end; ++i) {
      EXPECT_EQ(program.operands[i].sequence, 0U);
    }
  }
  EXPECT_EQ(sent, 0U);
  EXPECT_EQ(received, 12U);
}

}  // namespace
}  // namespace unisono::engine
