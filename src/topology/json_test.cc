#include "topology/json.h"

#include <gtest/gtest.h>

#include <string>

namespace unisono {
namespace {

std::string document(const std::string& devices, const std::string& links,
                     const std::string& ranks) {
  return R"({"format": "unisono.topology/1", "devices": [)" + devices + R"(], "links": [)" + links +
         R"(], "ranks": [)" + ranks + "]}";
}

const std::string kDevices = R"({"name": "a", "kind": "core"}, {"name": "b", "kind": "core"},
                                {"name": "s", "kind": "switch"})";
const std::string kRanks = R"("a", "b")";

std::string with_link(const std::string& figures) {
  return document(kDevices,
                  R"({"from": "a", "to": "s", )" + figures +
                      R"(}, {"from": "b", "to": "s", "latency_us": 1,
                            "bandwidth_gb_per_s_each_way": 1})",
                  kRanks);
}

void expect_failure(const std::string& text, const std::string& position,
                    const std::string& message) {
  const Parsed<Topology> parsed = parse_topology_json(text);
  EXPECT_FALSE(parsed);
  EXPECT_EQ(parsed.position, position);
  EXPECT_EQ(parsed.message, message);
}

TEST(TopologyJson, ReadsBothDirectionsOfALink) {
  const auto parsed =
      parse_topology_json(with_link(R"("latency_ns": 500, "bandwidth_gbit_per_s_each_way": 8)"));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  ASSERT_EQ(parsed.value->links.size(), 4U);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_DOUBLE_EQ(parsed.value->links[i].latency_us, 0.5);
    EXPECT_DOUBLE_EQ(parsed.value->links[i].bytes_per_us, 1000);
    EXPECT_EQ(parsed.value->links[i].reverse, 1 - static_cast<int>(i));
  }
  EXPECT_EQ(parsed.value->links[1].from, 2);
  EXPECT_EQ(parsed.value->links[1].to, 0);
}

TEST(TopologyJson, RefusesASecondLinkOfTheSameWay) {
  const auto text = [](const std::string& from, const std::string& to, const std::string& ways) {
    return document(kDevices,
                    R"({"from": "a", "to": "s", "latency_us": 1, "bandwidth_gb_per_s_each_way": 1},
                       {"from": "b", "to": "s", "latency_us": 1, "bandwidth_gb_per_s_each_way": 1},
                       {"from": ")" +
                        from + R"(", "to": ")" + to +
                        R"(", "latency_us": 1, "bandwidth_gb_per_s_)" + ways + R"(": 2})",
                    kRanks);
  };
  expect_failure(
      text("s", "a", "one_way"), "/links/2",
      "a second link from \"s\" to \"a\"; write parallel cables as one link with their sum");
  expect_failure(
      text("b", "s", "each_way"), "/links/2",
      "a second link from \"b\" to \"s\"; write parallel cables as one link with their sum");
  EXPECT_TRUE(parse_topology_json(text("a", "b", "one_way")));
}

TEST(TopologyJson, ReadsBackWhatItWrites) {
  for (const std::string figures : {R"("latency_ms": 1e12, "bandwidth_gb_per_s_each_way": 1e12)",
                                    R"("latency_ns": 1e-300, "bandwidth_mb_per_s_each_way": 1e-6)",
                                    R"("latency_us": 0.1, "bandwidth_mb_per_s_each_way": 0.00011)",
                                    R"("latency_us": 0.3, "bandwidth_gib_per_s_one_way": 3.7},
           {"from": "s", "to": "a", "latency_us": 7, "bandwidth_gbit_per_s_one_way": 0.7)"}) {
    SCOPED_TRACE(figures);
    const auto read = parse_topology_json(with_link(figures));
    ASSERT_TRUE(read) << read.position << ": " << read.message;
    const auto again = parse_topology_json(to_json(*read.value));
    ASSERT_TRUE(again) << again.position << ": " << again.message;
    for (std::size_t i = 0; i < read.value->links.size(); ++i) {
      EXPECT_EQ(again.value->links[i].latency_us, read.value->links[i].latency_us);
      EXPECT_EQ(again.value->links[i].bytes_per_us, read.value->links[i].bytes_per_us);
    }
  }
}

// Figures so large that times computed from them are not finite.
TEST(TopologyJson, RefusesFiguresBeyondEveryNetwork) {
  expect_failure(with_link(R"("latency_us": 1, "bandwidth_gb_per_s_each_way": 1e-300)"),
                 "/links/0/bandwidth_gb_per_s_each_way",
                 "the bandwidth is below one byte per second");
  expect_failure(with_link(R"("latency_ms": 1e15, "bandwidth_gb_per_s_each_way": 1)"),
                 "/links/0/latency_ms", "1000000000000000 is not in 0..1000000000000");
}

TEST(TopologyJson, OneWayIsOneLink) {
  const std::string text = document(kDevices,
                                    R"({"from": "a", "to": "b", "latency_us": 1,
                                        "bandwidth_gb_per_s_one_way": 2},
                                       {"from": "b", "to": "a", "latency_us": 1,
                                        "bandwidth_mb_per_s_one_way": 2})",
                                    kRanks);
  const auto parsed = parse_topology_json(text);
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  ASSERT_EQ(parsed.value->links.size(), 2U);
  EXPECT_DOUBLE_EQ(parsed.value->links[0].bytes_per_us, 2000);
  EXPECT_DOUBLE_EQ(parsed.value->links[1].bytes_per_us, 2);
  EXPECT_EQ(parsed.value->links[0].reverse, -1);
}

TEST(TopologyJson, IsTheSameWhenReadBack) {
  const auto parsed = parse_topology_json(document(
      kDevices +
          R"(, {"name": "n\"1", "kind": "node"}, {"name": "x", "kind": "gpu", "inside": "n\"1"})",
      R"({"from": "a", "to": "s", "latency_us": 0.1, "bandwidth_gb_per_s_each_way": 12.5},
         {"from": "b", "to": "s", "latency_us": 1, "bandwidth_gb_per_s_one_way": 3},
         {"from": "s", "to": "b", "latency_us": 2, "bandwidth_gb_per_s_one_way": 4})",
      kRanks));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  const std::string written = to_json(*parsed.value);
  const auto again = parse_topology_json(written);
  ASSERT_TRUE(again) << again.position << ": " << again.message << written;
  EXPECT_EQ(to_json(*again.value), written);
  EXPECT_EQ(again.value->links.size(), 4U);
  EXPECT_EQ(again.value->devices[4].inside, 3);
}

TEST(TopologyJson, KeepsProtocols) {
  const auto with_protocols = [](const std::string& protocols) {
    std::string text = with_link(R"("latency_us": 1, "bandwidth_gb_per_s_each_way": 1)");
    text.insert(text.find("\"devices\""), "\"protocols\": " + protocols + ", ");
    return text;
  };
  const auto parsed = parse_topology_json(with_protocols(
      R"([{"name": "LL", "start_us": 5, "message_us": 0.5, "share": 0.25},
          {"name": "Simple", "start_us": 20, "message_us": 1, "share": 1}])"));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  const auto again = parse_topology_json(to_json(*parsed.value));
  ASSERT_TRUE(again) << again.position << ": " << again.message;
  ASSERT_EQ(again.value->protocols.size(), 2U);
  EXPECT_EQ(again.value->protocols[0].name, "LL");
  EXPECT_EQ(again.value->protocols[0].share, 0.25);
  EXPECT_EQ(again.value->protocols[1].start_us, 20);
  expect_failure(with_protocols(R"([{"name": "x", "start_us": 5, "message_us": 1, "share": 0}])"),
                 "/protocols/0/share",
                 "a protocol must use at least a thousandth of the bandwidth");
}

TEST(TopologyJson, KeepsSwitchesThatReduce) {
  const std::string figures = R"("latency_us": 1, "bandwidth_gb_per_s_each_way": 1)";
  const auto with = [&](const std::string& device, const std::string& value) {
    std::string text = with_link(figures);
    const std::string end = "\"kind\": \"" + device + "\"";
    return text.insert(text.find(end) + end.size(), ", \"reduces\": " + value);
  };
  const auto parsed = parse_topology_json(with("switch", "0.85"));
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  const auto again = parse_topology_json(to_json(*parsed.value));
  ASSERT_TRUE(again) << again.position << ": " << again.message;
  EXPECT_EQ(again.value->devices[0].reduces, 0);
  EXPECT_EQ(again.value->devices[2].reduces, 0.85);
  expect_failure(with("core", "0.85"), "/devices/0/reduces", "only a switch can reduce");
  EXPECT_FALSE(parse_topology_json(with("switch", "1.5")));
}

TEST(TopologyJson, ReadsAPreset) {
  const auto parsed = parse_topology_json(
      R"({"format": "unisono.topology/1", "preset": "torus", "parameters": {"x": 3, "y": 2, "z": 1}})");
  ASSERT_TRUE(parsed) << parsed.message;
  EXPECT_EQ(parsed.value->rank_count(), 6);
}

TEST(TopologyJson, SaysWhatIsWrongWithALink) {
  expect_failure(with_link(R"("latency_us": 1, "bandwidth_gb_per_s_each_way": 0)"),
                 "/links/0/bandwidth_gb_per_s_each_way", "the bandwidth must be above zero");
  expect_failure(
      with_link(R"("latency_us": 1, "bandwidth_gbps_each_way": 1)"),
      "/links/0/bandwidth_gbps_each_way",
      "unknown unit \"gbps\"; bandwidth_ must be followed by one of gb_per_s, gbit_per_s, "
      "gib_per_s, mb_per_s");
  expect_failure(with_link(R"("latency_cycles": 1, "bandwidth_gb_per_s_each_way": 1)"),
                 "/links/0/latency_cycles",
                 "unknown unit \"cycles\"; latency_ must be followed by one of ns, us, ms");
  expect_failure(with_link(R"("latency_us": 1, "bandwidth_gb_per_s": 1)"),
                 "/links/0/bandwidth_gb_per_s",
                 "the key must end with _each_way or _one_way, to state its direction");
  expect_failure(with_link(R"("latency_us": -1, "bandwidth_gb_per_s_each_way": 1)"),
                 "/links/0/latency_us", "-1 is not in 0..1000000000000000");
  expect_failure(with_link(R"("latency_us": 1)"), "/links/0",
                 "the bandwidth is missing: add a member such as bandwidth_gb_per_s_each_way");
  expect_failure(with_link(R"("latency_us": 1, "latency_ns": 1, "bandwidth_gb_per_s_each_way": 1)"),
                 "/links/0/latency_ns", "a second latency");
  expect_failure(with_link(R"("latency_us": 1, "bandwidth_gb_per_s_each_way": 1, "width": 4)"),
                 "/links/0",
                 "unknown key \"width\"; a link has from, to, latency_UNIT and "
                 "bandwidth_UNIT_DIRECTION");
}

TEST(TopologyJson, SaysWhichLinkIsMissing) {
  expect_failure(document(kDevices,
                          R"({"from": "a", "to": "s", "latency_us": 1,
                              "bandwidth_gb_per_s_each_way": 1})",
                          kRanks),
                 "/ranks/1", "no links lead from rank 0 (a) to rank 1 (b)");
  expect_failure(document(kDevices,
                          R"({"from": "a", "to": "s", "latency_us": 1,
                              "bandwidth_gb_per_s_each_way": 1},
                             {"from": "s", "to": "b", "latency_us": 1,
                              "bandwidth_gb_per_s_one_way": 1})",
                          kRanks),
                 "/ranks/1", "no links lead from rank 1 (b) to rank 0 (a)");
  expect_failure(document(kDevices,
                          R"({"from": "a", "to": "switch9", "latency_us": 1,
                              "bandwidth_gb_per_s_each_way": 1})",
                          kRanks),
                 "/links/0/to", "there is no device \"switch9\"");
}

TEST(TopologyJson, LocatesTheSecondOfTwoEntriesBehindPairs) {
  expect_failure(document(kDevices,
                          R"({"from": "a", "to": "s", "latency_us": 1,
                              "bandwidth_gb_per_s_each_way": 1},
                             {"from": "s", "to": "s", "latency_us": 1,
                              "bandwidth_gb_per_s_each_way": 1})",
                          kRanks),
                 "/links/1", "both ends are \"s\"; a link joins two devices");
}

TEST(TopologyJson, RefusesACycleInContainment) {
  expect_failure(document(R"({"name": "a", "kind": "node", "inside": "b"},
                             {"name": "b", "kind": "node", "inside": "c"},
                             {"name": "c", "kind": "node", "inside": "a"})",
                          "", R"("a")"),
                 "/devices/0", "\"a\" is inside itself, through \"c\"");
  expect_failure(document(R"({"name": "a", "kind": "node", "inside": "a"})", "", R"("a")"),
                 "/devices/0", "\"a\" is inside itself, through \"a\"");
}

TEST(TopologyJson, RefusesTooManyRanks) {
  expect_failure(R"({"format": "unisono.topology/1", "preset": "fat_tree",
                     "parameters": {"hosts": 10000000}})",
                 "/parameters/hosts", "hosts=10000000 is not in 1..1048576");
  expect_failure(R"({"format": "unisono.topology/1", "preset": "torus",
                     "parameters": {"x": 1000, "y": 1000, "z": 10}})",
                 "/preset", "10000000 ranks are more than the 1048576 that a topology can have");
  std::string ranks = R"("a")";
  for (int i = 0; i < (1 << 20); ++i) {
    ranks += R"(,"a")";
  }
  expect_failure(document(kDevices, "", ranks), "/ranks",
                 "1048577 ranks are more than the 1048576 that a topology can have");
}

TEST(TopologyJson, RefusesOtherMistakes) {
  expect_failure(
      "", "byte 1",
      "not valid JSON: parse error at line 1, column 1: syntax error while parsing value "
      "- unexpected end of input; expected '[', '{', or a literal");
  expect_failure("[]", "/", "an array where an object belongs");
  expect_failure(R"({"format": "unisono.topology/2"})", "/format",
                 "unknown format \"unisono.topology/2\", this reads unisono.topology/1");
  expect_failure(R"({"format": "unisono.topology/1", "devces": []})", "/",
                 "unknown key \"devces\", did you mean \"devices\"?");
  expect_failure(R"({"format": "unisono.topology/1", "preset": "dgx_h10"})", "/preset",
                 "there is no preset \"dgx_h10\", did you mean \"dgx_h100\"?");
  expect_failure(document(kDevices, "", ""), "/ranks", "there are no ranks");
  expect_failure(document(kDevices, "", R"("a", "a")"), "/ranks/1",
                 "\"a\" has rank 0 already; a device has one rank");
  expect_failure(
      document(R"({"name": "a", "kind": "core"}, {"name": "a", "kind": "gpu"})", "", R"("a")"),
      "/devices/1", "the name \"a\" is that of device 0 already");
  expect_failure(
      document(R"({"name": "a", "kind": "toaster"})", "", R"("a")"), "/devices/0/kind",
      "\"toaster\" is not a kind of device: node, socket, core, gpu, nic, switch, group");
  expect_failure(R"({"a": [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]})", "/a/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0",
                 "nested more than 16 deep");
  expect_failure(R"({"a": 1, "a": 2})", "/", "key \"a\" comes twice");
}

TEST(TopologyJson, OneRankNeedsNoLink) {
  EXPECT_TRUE(parse_topology_json(document(R"({"name": "a", "kind": "core"})", "", R"("a")")));
}

}  // namespace
}  // namespace unisono
