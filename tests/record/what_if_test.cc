// Recordings for which the time without a straggler, with other links or without communication is
// known.
#include "record/what_if.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/failure.h"

namespace unisono::cli {
namespace {

constexpr double kNoTime = std::numeric_limits<double>::infinity();

// A job of several ranks, made call by call.
class Recorded {
 public:
  explicit Recorded(int ranks) {
    job_.ranks = ranks;
    job_.calls.resize(static_cast<std::size_t>(ranks));
    job_.hosts.resize(static_cast<std::size_t>(ranks));
    job_.has_record.assign(static_cast<std::size_t>(ranks), true);
    job_.has_lost.assign(static_cast<std::size_t>(ranks), false);
  }

  void group(const std::string& name, const std::vector<int>& members) {
    JobGroup& made = job_.groups[static_cast<std::size_t>(job_.group_of(name))];
    made.members = members;
    made.axis = name.substr(0, 2);
  }

  void call(int rank, const std::string& group, int number, double start_us, double end_us,
            const std::string& what = "all_reduce", double bytes = 8) {
    job_.calls[static_cast<std::size_t>(rank)].push_back({.rank = rank,
                                                          .group = job_.group_of(group),
                                                          .number = number,
                                                          .what = job_.name_of(what),
                                                          .bytes = bytes,
                                                          .start_us = start_us,
                                                          .took_us = end_us - start_us,
                                                          .end_us = end_us});
  }

  JobCalls& job() { return job_; }
  WhatIf simulation() { return {job_, account_}; }
  const Account& account() const { return account_; }

 private:
  JobCalls job_;
  Account account_;
};

// Each step: a computation, then an all_reduce that takes 10 us after the last rank has arrived.
Recorded steps(const std::vector<double>& compute_us, int count) {
  Recorded made(static_cast<int>(compute_us.size()));
  std::vector<int> all;
  for (int rank = 0; rank < static_cast<int>(compute_us.size()); ++rank) {
    all.push_back(rank);
  }
  made.group("world", all);
  double now = 0;
  for (int step = 1; step <= count; ++step) {
    const double begin = now + *std::max_element(compute_us.begin(), compute_us.end());
    for (const int rank : all) {
      made.call(rank, "world", step, now + compute_us[static_cast<std::size_t>(rank)], begin + 10);
    }
    now = begin + 10;
  }
  return made;
}

std::string refusal(Recorded made) {
  try {
    made.simulation();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(WhatIf, TakesAsLongAsRecordedWithoutAChange) {
  Recorded made = steps({100, 100, 100, 120}, 10);
  const WhatIf simulation = made.simulation();
  EXPECT_DOUBLE_EQ(simulation.run({}), simulation.recorded_us());
  EXPECT_EQ(made.account().used, 40);
}

TEST(WhatIf, TakesTheOthersTimeWithoutAStraggler) {
  Recorded made = steps({100, 100, 100, 120}, 10);
  const WhatIf simulation = made.simulation();
  EXPECT_EQ(simulation.stragglers(), std::vector<int>{3});
  // All steps except the first: the recording begins with the calls of that step.
  EXPECT_DOUBLE_EQ(simulation.run({.without = {3}}), 9 * 110.0 + 10);
}

// With one other rank, a median over both would leave half of the excess.
TEST(WhatIf, ComparesAStragglerWithTheOthersAlone) {
  Recorded made = steps({100, 120}, 10);
  EXPECT_DOUBLE_EQ(made.simulation().run({.without = {1}}), 9 * 110.0 + 10);
}

// Pairs that communicate with no other rank: both ranks of the slow pair stand out, and no rank
// shows how fast they could be.
TEST(WhatIf, TellsRanksThatNobodyCanBeComparedWith) {
  Recorded made(8);
  for (int pair = 0; pair < 4; ++pair) {
    const std::string name = "tp" + std::to_string(pair);
    made.group(name, {2 * pair, 2 * pair + 1});
    const double step_us = pair == 0 ? 130 : 110;
    for (int step = 0; step < 10; ++step) {
      for (const int rank : {2 * pair, 2 * pair + 1}) {
        made.call(rank, name, step + 1, step_us * (step + 1) - 10, step_us * (step + 1));
      }
    }
  }
  const WhatIf simulation = made.simulation();
  EXPECT_FALSE(simulation.can_replace({0, 1}));
  EXPECT_TRUE(simulation.can_replace({0}));
  EXPECT_THROW(static_cast<void>(simulation.run({.without = {0, 1}})), UsageError);
}

// The first of two messages was never awaited by its sender: the second must not replace it.
TEST(WhatIf, KeepsTheNumbersOfMessages) {
  JobCalls job;
  job.ranks = 2;
  job.calls.resize(2);
  add_transfers(nlohmann::ordered_json::parse(R"({"transfers": {
      "rank": [0, 0, 1, 1], "kind": ["send", "send", "recv", "recv"], "peer": [1, 1, 0, 0],
      "group": ["world", "world", "world", "world"], "tag": [0, 0, 0, 0],
      "start_us": [1, 2, 1, 2], "end_us": [null, 4, 3, 4]}})"),
                job);
  ASSERT_EQ(job.calls[0].size(), 1U);
  EXPECT_EQ(job.calls[0][0].number, 2);
  ASSERT_EQ(job.calls[1].size(), 2U);
  EXPECT_EQ(job.calls[1][1].number, 2);
}

TEST(WhatIf, ComputesFasterOnSomeRanks) {
  Recorded made = steps({100, 120}, 11);
  const WhatIf simulation = made.simulation();
  EXPECT_NEAR(simulation.run({.compute = 1.2, .faster = {1}}), 20 / 1.2 + 10 * 110 + 10, 1e-6);
  EXPECT_NEAR(simulation.run({.compute = 2, .faster = {0}}), 20 + 10 * 130 + 10, 1e-6);
}

TEST(WhatIf, LetsRanksLeaveAnOperationAtDifferentTimes) {
  Recorded made(2);
  made.group("world", {0, 1});
  made.call(0, "world", 1, 0, 50);
  made.call(1, "world", 1, 20, 30);
  made.call(0, "world", 2, 60, 100);
  made.call(1, "world", 2, 90, 100);
  const WhatIf simulation = made.simulation();
  EXPECT_DOUBLE_EQ(simulation.run({}), 100);
  EXPECT_DOUBLE_EQ(simulation.run({.link = kNoTime}), 80);  // rank 1 computes 20 and 60
}

TEST(WhatIf, KeepsCallsOverlapped) {
  Recorded made(2);
  made.group("world", {0, 1});
  made.group("tp", {0, 1});
  for (const int rank : {0, 1}) {
    made.call(rank, "world", 1, 0, 100);  // asynchronous
    made.call(rank, "tp", 1, 40, 60);
    made.call(rank, "tp", 2, 110, 120);
  }
  const WhatIf simulation = made.simulation();
  EXPECT_DOUBLE_EQ(simulation.run({}), 120);
  // The second call does not become earlier because the first one is shorter; the third one does.
  EXPECT_DOUBLE_EQ(simulation.run({.link = 2, .group = 0}), 70);
}

TEST(WhatIf, LetsARootLeaveBeforeTheOthersCome) {
  Recorded made(2);
  made.group("world", {0, 1});
  made.call(0, "world", 1, 0, 10, "broadcast");
  made.call(1, "world", 1, 100, 110, "broadcast");
  made.call(0, "world", 2, 40, 160);
  made.call(1, "world", 2, 150, 160);
  const WhatIf simulation = made.simulation();
  EXPECT_DOUBLE_EQ(simulation.run({}), 160);
  EXPECT_DOUBLE_EQ(simulation.run({.compute = 1000, .faster = {1}}), 50.0);
}

TEST(WhatIf, KeepsTheLatencyOfLinks) {
  Recorded made(2);
  made.group("world", {0, 1});
  for (const int rank : {0, 1}) {
    made.call(rank, "world", 1, 0, 15, "all_reduce", 1000);  // 5 us, and 10 us per 1000 bytes
    made.call(rank, "world", 2, 15, 40, "all_reduce", 2000);
  }
  const WhatIf simulation = made.simulation();
  EXPECT_TRUE(simulation.has_latencies());
  EXPECT_DOUBLE_EQ(simulation.run({.link = 2}), 5 + 5 + 5 + 10);
  EXPECT_DOUBLE_EQ(simulation.run({.link = kNoTime}), 0);
}

TEST(WhatIf, FindsTheSlowLinkAmongGroupsOfOneKind) {
  Recorded made(4);
  made.group("dp 0", {0, 1});
  made.group("dp 1", {2, 3});
  for (int step = 0; step < 3; ++step) {
    for (const int rank : {0, 1}) {
      made.call(rank, "dp 0", step + 1, 100 * step, 100 * step + 10);
    }
    for (const int rank : {2, 3}) {
      made.call(rank, "dp 1", step + 1, 100 * step, 100 * step + 30);
    }
  }
  const SlowLink slow = made.simulation().slow_link();
  EXPECT_EQ(made.job().groups[static_cast<std::size_t>(slow.group)].name, "dp 1");
  EXPECT_DOUBLE_EQ(slow.ratio, 3);
}

TEST(WhatIf, RefusesWhatItCannotSimulate) {
  EXPECT_EQ(refusal(Recorded(2)),
            "too little is recorded to simulate: all ranks ended 0 operations");
  EXPECT_EQ(refusal(steps({1, 1}, 1)),
            "too little is recorded to simulate: all ranks ended 1 operation");
  Recorded untimed = steps({1, 1}, 3);
  untimed.job().has_times = false;
  EXPECT_EQ(refusal(untimed),
            "there are no times to simulate: NCCL's log has only the order of the calls");
  Recorded all = steps({1, 2}, 3);
  const WhatIf simulation = all.simulation();
  EXPECT_THROW(simulation.run({.without = {0, 1}}), UsageError);
}

TEST(WhatIf, LeavesOutWhatNotAllRanksEnded) {
  Recorded made = steps({1, 1}, 3);
  made.call(0, "world", 4, 100, 110);
  made.simulation();
  ASSERT_EQ(made.account().left_out.size(), 1U);
  EXPECT_EQ(made.account().left_out[0].count, 1);
}

}  // namespace
}  // namespace unisono::cli
