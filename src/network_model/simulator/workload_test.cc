// Tests the behaviour of played workloads.
#include "network_model/simulator/workload.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"
#include "network_model/simulator/report.h"
#include "network_model/simulator/workload_testing.h"
#include "topology/presets.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

SimulationResult simulate_items(const std::string& items, SimulationOptions options = {}) {
  const auto parsed = parse_workload_json(document(items));
  EXPECT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  options.records = 1000;
  return simulate(*parsed.value, *make_preset("dgx_h100").value, options);
}

// Ranks 4 to 7 may begin only when the slowest of ranks 0 to 3 has ended.
TEST(Workload, AnItemBeginsAfterAllRanksHaveEndedAnother) {
  const std::string items = R"({"name": "early", "compute_us": 10, "group": "low"},
                               {"name": "late", "compute_us": 7, "group": "low"},
                               {"compute_us": 5, "group": [4, 5, 6, 7], "after": "late"})";
  for (const Contention contention : {Contention::off, Contention::on}) {
    const SimulationResult result = simulate_items(
        items, {.contention = contention, .rank_faults = {{.rank = 2, .factor = 2}}});
    EXPECT_DOUBLE_EQ(result.item_end_us[1], 34);
    EXPECT_DOUBLE_EQ(result.total_us, 39);
    EXPECT_DOUBLE_EQ(result.ranks[7].computing_us, 5);
    EXPECT_DOUBLE_EQ(result.ranks[7].waiting_us, 34);
    EXPECT_DOUBLE_EQ(result.critical.compute_us, 39);
    ASSERT_EQ(result.computes.size(), 12U);
    EXPECT_DOUBLE_EQ(result.computes.back().start_us, 34);
    EXPECT_DOUBLE_EQ(result.computes.back().end_us, 39);
  }
}

TEST(Workload, StreamsWaitForEachOtherToo) {
  // "next" waits for the last of three "step" items, on another stream of the same ranks. "last"
  // waits for two items at once.
  const SimulationResult result = simulate_items(
      R"({"name": "step", "compute_us": 10, "repeat": 3},
         {"name": "beside", "compute_us": 50, "stream": 2},
         {"name": "next", "compute_us": 1, "stream": 1, "after": "step"},
         {"name": "last", "compute_us": 1, "stream": 3, "after": ["next", "beside"]})");
  EXPECT_DOUBLE_EQ(result.item_end_us[4], 31);
  EXPECT_DOUBLE_EQ(result.item_end_us[5], 51);
}

// Two items with the same name run on different groups, and the first of them ends last.
TEST(Workload, AfterAllItemsOfAName) {
  const std::string items = R"({"name": "part", "compute_us": 30, "group": "low"},
                               {"name": "part", "compute_us": 10, "group": [4, 5]},
                               {"name": "part", "compute_us": 5, "group": [4, 5]},
                               {"compute_us": 1, "group": [6, 7], "after": "part"})";
  for (const Contention contention : {Contention::off, Contention::on}) {
    const SimulationResult result = simulate_items(items, {.contention = contention});
    EXPECT_DOUBLE_EQ(result.item_end_us[3], 31);
  }
}

TEST(Workload, AfterAnOperationOfAnotherGroup) {
  const std::string ring = R"({"name": "sum", "collective": "all_reduce", "algorithm": "ring",
                               "bytes": 1e6, "group": "low"})";
  for (const Contention contention : {Contention::off, Contention::on}) {
    const double alone = simulate_items(ring, {.contention = contention}).total_us;
    const SimulationResult both =
        simulate_items(ring + R"(, {"collective": "all_reduce", "algorithm": "ring", "bytes": 1e6,
                     "group": [4, 5, 6, 7], "after": "sum"})",
                       {.contention = contention});
    EXPECT_NEAR(both.total_us, 2 * alone, 1e-9 * alone);
    EXPECT_EQ(both.critical.messages, 12);
  }
}

// Each message has the bytes of its block, on any network and in both engines.
TEST(Workload, MovesWhatTheCountsSay) {
  const Topology topology = *make_preset("dgx_h100:nodes=2").value;
  for (const char* name : {"flat", "pairwise"}) {
    Schedule schedule =
        build_schedule(*find_algorithm(Collective::all_to_all, name), {.ranks = 16});
    schedule.counts.element_bytes = 1000;
    for (int from = 0; from < 16; ++from) {
      schedule.counts.send.emplace_back();
      for (int to = 0; to < 16; ++to) {
        schedule.counts.send.back().push_back((from * 7 + to * 3) % 5 * (to == 3 ? 100 : 1));
      }
    }
    Workload workload{.ranks = 16};
    workload.items.push_back(exchange(schedule));
    for (const Contention contention : {Contention::off, Contention::on}) {
      const SimulationResult result =
          simulate(workload, topology, {.contention = contention, .records = 1000});
      ASSERT_EQ(result.records.size(), 240U);  // empty blocks are messages too
      for (const MessageRecord& record : result.records) {
        EXPECT_EQ(record.bytes,
                  1000.0 * static_cast<double>(schedule.counts.sent(record.from, record.to)));
      }
    }
    EXPECT_THROW(simulate(workload, topology, {.segment_bytes = 100}), Error);
  }
}

// The more of the data is on rank 0, the later all ranks end. Equal counts take as long as equal
// blocks.
TEST(Workload, CountsThatAreEqualAreEqualBlocks) {
  const Topology topology = *make_preset("dgx_h100").value;
  const Algorithm& pairwise = *find_algorithm(Collective::all_to_all, "pairwise");
  Schedule schedule = build_schedule(pairwise, {.ranks = 8});
  schedule.counts = {.element_bytes = 4096, .send = CountRows(8, std::vector<std::int64_t>(8, 10))};
  Workload counted{.ranks = 8};
  counted.items.push_back(exchange(schedule));
  Workload equal{.ranks = 8};
  equal.items.push_back(operation(pairwise, {.ranks = 8}, 8 * 40960));
  const double us = simulate(equal, topology).total_us;
  EXPECT_NEAR(simulate(counted, topology).total_us, us, 1e-9 * us);
  for (std::vector<std::int64_t>& row : schedule.counts.send) {
    row = {80, 0, 0, 0, 0, 0, 0, 0};
  }
  counted.items = {exchange(schedule)};
  EXPECT_GT(simulate(counted, topology).total_us, us);
}

// All groups together take as long as one group alone, because they do not meet on one switch.
TEST(Workload, GroupsOfAFamilyDoNotWaitForEachOther) {
  const std::string sum = R"({"collective": "all_reduce", "algorithm": "ring", "bytes": 1e6, )";
  EXPECT_DOUBLE_EQ(simulate_items(sum + R"("group": {"size": 4}})").total_us,
                   simulate_items(sum + R"("group": "low"})").total_us);
}

TEST(Workload, RanksComputeForDifferentTimes) {
  for (const Contention contention : {Contention::off, Contention::on}) {
    const SimulationResult result = simulate_items(
        R"({"compute_us": [1, 2, 3, 40], "group": "low"})", {.contention = contention});
    EXPECT_DOUBLE_EQ(result.total_us, 40);
    EXPECT_DOUBLE_EQ(result.ranks[2].computing_us, 3);
  }
  expect_failure(R"({"compute_us": [1, 2], "group": "low"})", "/items/0/compute_us",
                 "2 in a list for 4 ranks");
}

// Rank 0 ends the first step early. An item that waits only for rank 0's own part begins then.
TEST(Workload, AfterItsOwnPart) {
  const std::string items = R"({"name": "step", "compute_us": [5, 50, 5, 5], "group": "low"},
                               {"compute_us": 1, "stream": 1, "group": [0, 4], "after_own": "step"},
                               {"compute_us": 1, "stream": 2, "group": [1], "after_own": ["step"]},
                               {"compute_us": 1, "stream": 3, "group": [0], "after": "step"})";
  for (const Contention contention : {Contention::off, Contention::on}) {
    const SimulationResult result = simulate_items(items, {.contention = contention});
    EXPECT_DOUBLE_EQ(result.item_end_us[1], 6);
    EXPECT_DOUBLE_EQ(result.item_end_us[2], 51);
    EXPECT_DOUBLE_EQ(result.item_end_us[3], 51);
  }
}

TEST(Workload, SendsFromRankToRank) {
  const std::string head = R"({"from": [0, 1, 2, 3], "to": )";
  for (const Contention contention : {Contention::off, Contention::on}) {
    const SimulationResult shift = simulate_items(
        head + R"([1, 2, 3, 0], "bytes": [1000000, 2e6, 0, 1e6]})", {.contention = contention});
    ASSERT_EQ(shift.records.size(), 4U);
    EXPECT_EQ(shift.records[1].bytes, shift.records[1].from == 1 ? 2e6 : shift.records[1].bytes);
    const SimulationResult alone =
        simulate_items(R"({"from": 1, "to": 2, "bytes": 2e6})", {.contention = contention});
    EXPECT_DOUBLE_EQ(shift.total_us, alone.total_us);  // all messages at once
    const SimulationResult bound = simulate_items(
        R"({"collective": "broadcast", "algorithm": "binomial", "bytes": 2e6, "group": [1, 2]})",
        {.contention = contention});
    EXPECT_DOUBLE_EQ(alone.total_us, bound.total_us);
    // A sender completes its message before its next item; other ranks continue.
    const SimulationResult chain = simulate_items(
        R"({"from": 0, "to": 1, "bytes": 2e6}, {"from": 1, "to": 2, "bytes": 2e6},
           {"compute_us": 3, "group": [3]})",
        {.contention = contention});
    EXPECT_NEAR(chain.total_us, 2 * alone.total_us, 1e-9);
    EXPECT_DOUBLE_EQ(chain.item_end_us[2], 3);
  }
}

// Both engines refuse the workload.
TEST(Workload, RefusesToPlayMoreMessagesThanItMay) {
  const std::string items = R"({"collective": "all_to_all", "algorithm": "pairwise", "bytes": 1e6,
                                "repeat": 1000})";  // of 56 messages each
  for (const Contention contention : {Contention::off, Contention::on}) {
    EXPECT_THROW(simulate_items(items, {.contention = contention, .most_messages = 55999}), Error);
    EXPECT_NO_THROW(simulate_items(items, {.contention = contention, .most_messages = 56000}));
  }
}

// The files can be parsed, and agree with the result.
TEST(Report, IsJson) {
  const Topology topology = *make_preset("dgx_h100:nodes=2").value;
  const auto parsed = parse_workload_json(
      R"({"format": "unisono.workload/1", "ranks": 16,
          "items": [{"name": "a \"layer\"", "compute_us": 5},
                    {"collective": "all_reduce", "algorithm": "halving_doubling", "bytes": 1e6}]})");
  ASSERT_TRUE(parsed) << parsed.message;
  const SimulationResult result = simulate(*parsed.value, topology, {.records = 10000});
  const auto report = parse_json(report_json(result, *parsed.value, &topology));
  ASSERT_TRUE(report) << report.message;
  const JsonNode root(*report.value, "");
  EXPECT_NEAR(root.at("time_us").number(0, 1e9), result.total_us, 1e-9);
  EXPECT_EQ(root.at("ranks").size(), 16U);
  EXPECT_EQ(root.at("items").item(0).at("name").text(), "a \"layer\"");
  EXPECT_GT(root.at("links").size(), 0U);
  EXPECT_EQ(root.at("critical_messages").size(), result.critical_records.size());
  const auto trace = parse_json(chrome_trace(result, *parsed.value));
  ASSERT_TRUE(trace) << trace.message;
  // Two events per message, one per compute step, and the names of 16 * 3 threads.
  EXPECT_EQ(result.computes.size(), 16U);
  EXPECT_EQ(JsonNode(*trace.value, "").at("traceEvents").size(),
            2 * result.records.size() + 16 + 48);
}

}  // namespace
}  // namespace unisono::network_model
