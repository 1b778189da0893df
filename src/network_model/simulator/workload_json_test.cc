// Documents are read correctly, and errors are reported with their position.
#include <gtest/gtest.h>

#include <string>

#include "network_model/simulator/workload_testing.h"
#include "unisono/error.hpp"

namespace unisono::network_model {
namespace {

TEST(WorkloadJson, ReadsItems) {
  const auto parsed = parse_workload_json(document(
      R"({"name": "layer", "compute_us": 250},
         {"collective": "all_reduce", "algorithm": "ring", "bytes": 1e6, "group": "low", "repeat": 2},
         {"collective": "broadcast", "algorithm": "binomial", "bytes": 4096, "root": 2,
          "group": [7, 5, 3], "stream": 1})"));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  const Workload& workload = *parsed.value;
  EXPECT_EQ(workload.ranks, 8);
  ASSERT_EQ(workload.items.size(), 4U);
  EXPECT_EQ(workload.items[0].name, "layer");
  EXPECT_EQ(workload.items[0].compute_us, 250);
  EXPECT_EQ(workload.items[0].ranks.size(), 8U);
  EXPECT_EQ(workload.items[1].name, "all_reduce/ring");
  EXPECT_EQ(workload.items[1].ranks, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_NE(workload.items[2].compact, nullptr);
  EXPECT_EQ(workload.items[2].compact, workload.items[1].compact);
  EXPECT_EQ(workload.items[3].ranks, (std::vector<int>{7, 5, 3}));
  EXPECT_EQ(workload.items[3].stream, 1);
  ASSERT_NE(workload.items[3].schedule, nullptr);
  EXPECT_EQ(workload.items[3].schedule->root, 2);
}

TEST(WorkloadJson, SaysWhatIsWrong) {
  expect_failure(R"({"compute_us": -1})", "/items/0/compute_us", "-1 is not in 0..1000000000000");
  expect_failure(R"({"compute_us": 1, "bytes": 4})", "/items/0/bytes",
                 "not allowed in a compute step");
  expect_failure(R"({"collective": "all_redcue", "algorithm": "ring", "bytes": 4})",
                 "/items/0/collective", "\"all_redcue\" is not a collective");
  expect_failure(R"({"collective": "all_reduce", "algorithm": "rign", "bytes": 4})",
                 "/items/0/algorithm", "all_reduce has no algorithm \"rign\"");
  expect_failure(R"({"collective": "all_reduce", "algorithm": "ring"})", "/items/0",
                 "key \"bytes\" is missing");
  expect_failure(R"({"compute_us": 1, "group": "high"})", "/items/0/group",
                 "there is no group \"high\"");
  expect_failure(R"({"compute_us": 1, "group": [0, 8]})", "/items/0/group/1", "8 is not in 0..7");
  expect_failure(R"({"compute_us": 1, "group": [1, 1]})", "/items/0/group/1", "rank 1 comes twice");
  expect_failure(R"({"compute_us": 1, "group": []})", "/items/0/group",
                 "a group needs at least one rank");
  expect_failure(R"({"compute_us": 1, "repeat": 999999}, {"compute_us": 1, "repeat": 2})",
                 "/items/1",
                 "more than 1000000 items, or more than 50000000 ranks and dependencies in total");
  expect_failure(R"({"compute_us": 1, "repeat": 0})", "/items/0/repeat", "0 is not in 1..1000000");
  expect_failure(R"({"compute_us": 1, "grop": [0]})", "/items/0",
                 "unknown key \"grop\", did you mean \"group\"?");
}

TEST(WorkloadJson, RefusesMoreMessagesThanCanBe) {
  const auto parsed = parse_workload_json(
      R"({"format": "unisono.workload/1", "ranks": 1000000,
          "items": [{"collective": "all_to_all", "algorithm": "pairwise", "bytes": 1}]})");
  EXPECT_EQ(parsed.position, "/items/0/algorithm");
  EXPECT_EQ(parsed.message,
            "all_to_all/pairwise on 1000000 ranks has too many messages to simulate");
}

// The advice lists only algorithms of the same collective that can be simulated.
TEST(WorkloadJson, TooManyMessagesHaveOtherAlgorithms) {
  const auto advice = [](Collective collective, const char* name, int ranks, bool written_out) {
    try {
      operation(*find_algorithm(collective, name), {.ranks = ranks}, 1, written_out);
    } catch (const Error& error) {
      const std::string text = error.what();
      return text.substr(text.find('\n') + 1);
    }
    return std::string("it can be simulated");
  };
  EXPECT_EQ(advice(Collective::all_to_all, "pairwise", 8192, false),
            "use fewer ranks, or another algorithm: hierarchical");
  EXPECT_EQ(advice(Collective::all_to_all, "pairwise", 1000000, false), "use fewer ranks");
  EXPECT_EQ(advice(Collective::all_reduce, "flat", 100000, false),
            "use fewer ranks, or another algorithm: ring, hierarchical");
  EXPECT_EQ(advice(Collective::all_reduce, "ring", 100000, true), "use fewer ranks");
}

// Few messages, each of which consists of thousands of moves.
TEST(WorkloadJson, RefusesMoreChunksThanCanBeFollowed) {
  const Algorithm& bruck = *find_algorithm(Collective::all_to_all, "bruck");
  EXPECT_THROW(operation(bruck, {.ranks = 30000}, 1), Error);
  const Algorithm& scatter = *find_algorithm(Collective::scatter, "binomial");
  EXPECT_NO_THROW(operation(scatter, {.ranks = 16384}, 1));
}

TEST(WorkloadJson, CountsTheRanksOfAllItems) {
  std::string items;
  for (int i = 0; i <= 50; ++i) {
    items += (i == 0 ? "" : ",") + std::string(R"({"compute_us": 1, "repeat": 1})");
  }
  const auto parsed = parse_workload_json(
      R"({"format": "unisono.workload/1", "ranks": 1000000, "items": [)" + items + "]}");
  EXPECT_EQ(parsed.position, "/items/50");
}

TEST(WorkloadJson, NamesEarlierItemsOnly) {
  expect_failure(R"({"compute_us": 1, "after": "x"}, {"name": "x", "compute_us": 1})",
                 "/items/0/after", "no item before this one has the name \"x\"");
  expect_failure(R"({"name": "x", "compute_us": 1, "after": ["x"]})", "/items/0/after/0",
                 "no item before this one has the name \"x\"");
}

TEST(WorkloadJson, TakesSchedulesOfTheUser) {
  const std::string items =
      R"({"schedule": "own.json", "bytes": 1e6, "group": "low", "repeat": 2})";
  int loads = 0;
  const auto load = [&loads](const std::string& name) {
    EXPECT_EQ(name, "own.json");
    ++loads;
    return build_schedule(*find_algorithm(Collective::all_reduce, "ring"), {.ranks = 4});
  };
  const auto parsed = parse_workload_json(document(items + "," + items), false, {.schedule = load});
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  EXPECT_EQ(loads, 1);
  EXPECT_EQ(parsed.value->items.size(), 4U);
  EXPECT_EQ(parsed.value->items[0].name, "own.json");
  const auto wrong =
      parse_workload_json(document(R"({"schedule": "own.json", "bytes": 1e6, "group": [1, 2]})"),
                          false, {.schedule = load});
  EXPECT_EQ(wrong.position, "/items/0/schedule");
  EXPECT_EQ(wrong.message, "the schedule is for 4 ranks, but the group has 2");
  expect_failure(items, "/items/0/schedule", "schedule files cannot be read here");
}

TEST(WorkloadJson, TakesCounts) {
  const std::string rows = "[[0, 5, 0], [3, 1, 1], [9, 0, 0]]";
  const auto item = [](const std::string& sizes) {
    return R"({"collective": "all_to_all_v", "algorithm": "pairwise", "group": [0, 1, 2], )" +
           sizes + "}";
  };
  const auto parsed =
      parse_workload_json(document(item("\"counts\": " + rows + ", \"element_bytes\": 100")));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  const WorkItem& read = parsed.value->items[0];
  EXPECT_EQ(read.name, "all_to_all_v/pairwise");
  EXPECT_EQ(read.bytes, 1200);  // received by rank 0
  EXPECT_EQ(read.schedule->counts.sent(2, 0), 9);
  const auto load = [](const std::string& name) {
    EXPECT_EQ(name, "routing.csv");
    return Counts{.element_bytes = 7, .send = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}};
  };
  const auto named =
      parse_workload_json(document(item("\"counts\": \"routing.csv\"")), false, {.counts = load});
  ASSERT_TRUE(named) << named.position << ": " << named.message;
  EXPECT_EQ(named.value->items[0].bytes, 24 * 7);
}

TEST(WorkloadJson, SaysWhatIsWrongWithCounts) {
  const std::string v = R"({"collective": "all_to_all_v", "algorithm": "flat", "group": [0, 1], )";
  expect_failure(v + "\"bytes\": 5}", "/items/0/bytes",
                 "all_to_all_v needs counts; use all_to_all for equal blocks");
  expect_failure(v + "\"element_bytes\": 5}", "/items/0", "key \"counts\" is missing");
  expect_failure(v + "\"counts\": [[1, 2]]}", "/items/0/counts",
                 "2 counts in a table of 1 row; give one row and one column per rank");
  expect_failure(v + "\"counts\": [[1]]}", "/items/0/counts",
                 "the counts are for 1 ranks, but the group has 2");
  expect_failure(v + "\"counts\": [[1, -1], [0, 0]]}", "/items/0/counts/0/1",
                 "-1 is not in 0..9007199254740992");
  expect_failure(v + "\"counts\": \"file.csv\"}", "/items/0/counts",
                 "count files cannot be read here; write the rows");
  expect_failure(R"({"collective": "all_to_all", "algorithm": "flat", "bytes": 8,
                     "counts": [[1]]})",
                 "/items/0/counts", "all_to_all has bytes; only all_to_all_v has counts");
  expect_failure(R"({"compute_us": 8, "counts": [[1]]})", "/items/0/counts",
                 "not allowed in a compute step");
}

TEST(WorkloadJson, FamiliesDoTheSameAtOnce) {
  const std::string sum =
      R"({"name": "sum", "collective": "all_reduce", "algorithm": "ring", "bytes": 1e6, )";
  const auto parsed = parse_workload_json(document(sum + R"("group": {"size": 2, "stride": 4}},)" +
                                                   sum + R"("group": [[0, 1], [2, 3, 4]]},
      {"compute_us": 1, "group": {"size": 4}, "after": "sum"})"));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  const std::vector<WorkItem>& items = parsed.value->items;
  ASSERT_EQ(items.size(), 7U);
  EXPECT_EQ(items[1].ranks, (std::vector<int>{1, 5}));
  EXPECT_EQ(items[3].ranks, (std::vector<int>{3, 7}));
  EXPECT_EQ(items[5].ranks, (std::vector<int>{2, 3, 4}));
  EXPECT_EQ(items[0].compact, items[4].compact);  // both groups have two ranks
  EXPECT_EQ(items[6].ranks.size(), 8U);           // a compute step has no groups
  EXPECT_EQ(items[6].after.size(), 6U);
  expect_failure(sum + R"("group": {"size": 3}})", "/items/0/group",
                 "groups of 3 with stride 1 do not divide 8 ranks");
  expect_failure(sum + R"("group": [[0, 1], [1, 2]]})", "/items/0/group/1/0", "rank 1 comes twice");
}

TEST(WorkloadJson, BlocksAreRepeated) {
  const auto parsed = parse_workload_json(document(
      R"({"repeat": 2, "items": [
            {"name": "a", "compute_us": 1},
            {"repeat": 3, "items": [{"name": "b", "compute_us": 2, "stream": 1, "after": "a"}]}]})"));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  std::string order;
  for (const WorkItem& item : parsed.value->items) {
    order += item.name;
  }
  EXPECT_EQ(order, "abbbabbb");
  EXPECT_EQ(parsed.value->items[2].after, std::vector<int>{0});
  EXPECT_EQ(parsed.value->items[6].after, std::vector<int>{4});  // from the same repeat of the
                                                                 // block
  expect_failure(R"({"repeat": 2, "items": []})", "/items/0/items",
                 "a block needs at least one item");
  expect_failure(R"({"stream": 2, "items": [{"compute_us": 1}]})", "/items/0",
                 "unknown key \"stream\"");
  expect_failure(R"({"repeat": 1000000, "items": [{"repeat": 1000000, "items":
                     [{"compute_us": 1, "group": [0]}]}]})",
                 "/items/0/items/0/items/0",
                 "more than 1000000 items, or more than 50000000 ranks and dependencies in total");
}

TEST(WorkloadJson, BoundsWhatItemsWaitFor) {
  std::string items = R"({"name": "x", "compute_us": 1, "group": [0]})";
  for (int stream = 1; stream < 64; ++stream) {
    items += R"(, {"name": "x", "compute_us": 1, "group": [0], "stream": )" +
             std::to_string(stream) + "}";
  }
  expect_failure(items + R"(, {"compute_us": 1, "group": [0], "repeat": 999000, "after": "x"})",
                 "/items/64",
                 "more than 1000000 items, or more than 50000000 ranks and dependencies in total");
}

TEST(WorkloadJson, SaysWhatIsWrongWithMessages) {
  expect_failure(R"({"from": 0, "bytes": 1})", "/items/0", "key \"to\" is missing");
  expect_failure(R"({"from": 3, "to": [2, 3], "bytes": 1})", "/items/0", "rank 3 sends to itself");
  expect_failure(R"({"from": [1, 3], "to": [2], "bytes": 1})", "/items/0/to",
                 "1 in a list for 2 messages");
  expect_failure(R"({"from": [], "to": [], "bytes": 1})", "/items/0/from",
                 "messages need a sender");
  expect_failure(R"({"from": 0, "to": 1, "bytes": 1, "root": 0})", "/items/0/root",
                 "not allowed in messages from ranks to other ranks");
}

TEST(WorkloadJson, ComputesWhatADeviceCan) {
  const auto with = [](const std::string& device, const std::string& item,
                       const WorkloadSources& sources = {}) {
    return parse_workload_json(R"({"format": "unisono.workload/1", "ranks": 2, "device": )" +
                                   device + R"(, "items": [)" + item + "]}",
                               false, sources);
  };
  const std::string rates = R"({"flops_per_s": 1e12, "memory_bytes_per_s": 1e9})";
  const auto parsed = with(rates, R"({"flops": [2e9, 8e9], "memory_bytes": 5e6})");
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  EXPECT_EQ(parsed.value->items[0].rank_compute_us, (std::vector<double>{5000, 8000}));
  const auto named = with(R"("toy")", R"({"flops": 3e9})", {.device = [](const std::string& name) {
                            EXPECT_EQ(name, "toy");
                            return DeviceRates{.flops_per_s = 1e9, .memory_bytes_per_s = 1};
                          }});
  ASSERT_TRUE(named) << named.position << ": " << named.message;
  EXPECT_EQ(named.value->items[0].compute_us, 3e6);
  const auto unknown = with(R"("toy")", R"({"flops": 3e9})");
  EXPECT_EQ(unknown.position, "/device");
  EXPECT_EQ(unknown.message,
            "there is no device \"toy\"; give its flops_per_s and memory_bytes_per_s instead");
  EXPECT_EQ(with(rates, R"({"flops": 1e30})").message, "that would take more than 1e12 us");
  expect_failure(R"({"flops": 1})", "/items/0/flops", "the workload names no device");
  expect_failure(R"({"compute_us": 1, "flops": 1})", "/items/0/flops",
                 "not allowed beside compute_us");
}

TEST(WorkloadJson, HasRoomForManyGroups) {
  std::string groups;
  for (int i = 0; i < 5000; ++i) {
    groups += (i == 0 ? "\"g" : ",\"g") + std::to_string(i) + "\": [" + std::to_string(i) + "]";
  }
  const auto parsed =
      parse_workload_json(R"({"format": "unisono.workload/1", "ranks": 5000, "groups": {)" +
                          groups + R"(}, "items": [{"compute_us": 1, "group": "g4999"}]})");
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  EXPECT_EQ(parsed.value->items[0].ranks, std::vector<int>{4999});
}

// A rule is small; expanded, each of these would take megabytes.
TEST(WorkloadJson, HasRoomForManyRulesOfManyRanks) {
  std::string groups;
  for (int i = 0; i < 1000; ++i) {
    groups += (i == 0 ? "\"g" : ",\"g") + std::to_string(i) + R"(": {"size": 1})";
  }
  const auto parsed =
      parse_workload_json(R"({"format": "unisono.workload/1", "ranks": 1048576, "groups": {)" +
                          groups + R"(}, "items": [{"compute_us": 1, "group": [7]}]})");
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  EXPECT_EQ(parsed.value->items[0].ranks, std::vector<int>{7});
  const auto wrong = parse_workload_json(
      R"({"format": "unisono.workload/1", "ranks": 8, "groups": {"unused": {"size": 3}},
          "items": [{"compute_us": 1}]})");
  EXPECT_EQ(wrong.position, "/groups/unused");
}

// The limit is checked before the items are made: the error in the second item is not reported.
TEST(WorkloadJson, CountsTheItemsOfAFamilyBeforeTheyAreMade) {
  const auto parsed = parse_workload_json(
      R"({"format": "unisono.workload/1", "ranks": 1048576, "items": [
          {"collective": "all_reduce", "algorithm": "ring", "bytes": 4, "group": {"size": 1}},
          {"compute_us": -1}]})");
  EXPECT_EQ(parsed.position, "/items/0");
  EXPECT_EQ(parsed.message,
            "more than 1000000 items, or more than 50000000 ranks and dependencies in total");
}

TEST(WorkloadJson, ANameThatComesTwiceIsWaitedForOnce) {
  const auto parsed = parse_workload_json(document(R"({"name": "a", "compute_us": 1, "group": [0]},
                  {"name": "b", "compute_us": 1, "group": [1]},
                  {"compute_us": 1, "after": ["a", "b", "a"], "after_own": ["b", "b"]})"));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  EXPECT_EQ(parsed.value->items[2].after, (std::vector<int>{0, 1}));
  EXPECT_EQ(parsed.value->items[2].after_own, std::vector<int>{1});
}

TEST(WorkloadJson, ReadsTheCountsOfAFamilyOnce) {
  int read = 0;
  const auto load = [&](const std::string&) {
    ++read;
    return Counts{.send = {{1, 2}, {3, 4}}};
  };
  const auto parsed = parse_workload_json(
      document(R"({"collective": "all_to_all_v", "algorithm": "pairwise", "counts": "routing.csv",
                   "group": {"size": 2}})"),
      false, {.counts = load});
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  EXPECT_EQ(read, 1);
  ASSERT_EQ(parsed.value->items.size(), 4U);
  EXPECT_EQ(parsed.value->items[3].ranks, (std::vector<int>{6, 7}));
  EXPECT_EQ(parsed.value->items[3].schedule->counts.sent(1, 0), 3);
}

}  // namespace
}  // namespace unisono::network_model
