#include "cost/choices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cost/machine_json.h"
#include "network_model/choose.h"
#include "network_model/fit_machine.h"

namespace unisono::network_model {
namespace {

TEST(Choices, NearestRanksThenTheRowOfTheSize) {
  const cost::Choices choices({{Collective::all_reduce, 8, 0, "flat"},
                               {Collective::all_reduce, 2, 4096, "flat"},
                               {Collective::all_reduce, 2, 0, "one_shot"},
                               {Collective::broadcast, 2, 64, "binomial"}});
  const auto name = [&](Collective collective, int ranks, double bytes) {
    const cost::Choice* found = choices.find(collective, ranks, bytes);
    return found == nullptr ? "" : found->algorithm + "/" + std::to_string(found->ranks);
  };
  EXPECT_EQ(name(Collective::all_reduce, 2, 0), "one_shot/2");
  EXPECT_EQ(name(Collective::all_reduce, 2, 4095), "one_shot/2");
  EXPECT_EQ(name(Collective::all_reduce, 2, 4096), "flat/2");
  EXPECT_EQ(name(Collective::all_reduce, 1, 1e12), "flat/2");
  EXPECT_EQ(name(Collective::all_reduce, 3, 8), "one_shot/2");  // nearest to 2 by ratio: 3/2 is
                                                                // less than 8/3
  EXPECT_EQ(name(Collective::all_reduce, 4, 8), "one_shot/2");  // 2 and 8 are equally near
  EXPECT_EQ(name(Collective::all_reduce, 5, 8), "flat/8");
  EXPECT_EQ(name(Collective::broadcast, 4, 8), "binomial/2");  // below the first row
  EXPECT_EQ(name(Collective::broadcast, 5, 64), "");           // more than twice as many ranks
  EXPECT_EQ(name(Collective::all_reduce, 16, 8), "flat/8");
  EXPECT_EQ(name(Collective::gather, 2, 8), "");
}

// flat takes 1 us plus 1 ns per byte. ring takes `ring_s` plus a tenth of a ns per byte.
cost::Machine machine(double ring_s, double most_flat = 1e7) {
  std::vector<cost::Point> points;
  for (double bytes = 8; bytes < 1e7; bytes *= 2) {
    if (bytes <= most_flat) {
      points.push_back({Collective::all_reduce, "flat", 2, bytes, 1e-6 + 1e-9 * bytes});
    }
    points.push_back({Collective::all_reduce, "ring", 2, bytes, ring_s + 1e-10 * bytes});
  }
  return fit_machine(points);
}

cost::Choices make_choices(const cost::Machine& machine,
                           const DefaultAlgorithm& default_algorithm) {
  return cost::Choices(choose_algorithms(machine, default_algorithm));
}

std::string_view always_flat(Collective, int, double) {
  return "flat";
}

TEST(Choices, TheFastestFromWhereItIsWorthIt) {
  const cost::Choices choices = make_choices(machine(1e-5), always_flat);
  ASSERT_EQ(choices.rows().size(), 3U);
  EXPECT_EQ(choices.rows()[0], (cost::Choice{Collective::all_reduce, 2, 0, "flat"}));
  EXPECT_EQ(choices.rows()[2].algorithm, "");  // far above the measured sizes
  EXPECT_EQ(choices.rows()[2].from_bytes, 4 * 8388608);
  EXPECT_EQ(choices.rows()[1].algorithm, "ring");
  EXPECT_GT(choices.rows()[1].from_bytes, 8'000);  // both are equal at 10,000 bytes
  EXPECT_LT(choices.rows()[1].from_bytes, 20'000);
}

TEST(Choices, NoneWhereItWasNotMeasured) {
  std::vector<cost::Point> points;
  for (double bytes = 8; bytes < 1e6; bytes *= 4) {
    points.push_back({Collective::all_reduce, "flat", 2, bytes, 1e-5 + 1e-9 * bytes});
    if (bytes > 1000 && bytes < 100'000) {  // always the faster algorithm by its trend
      points.push_back({Collective::all_reduce, "ring", 2, bytes, 1e-6 + 1e-10 * bytes});
    }
  }
  const cost::Choices choices = make_choices(fit_machine(points), always_flat);
  EXPECT_EQ(choices.find(Collective::all_reduce, 2, 512)->algorithm, "flat");
  EXPECT_EQ(choices.find(Collective::all_reduce, 2, 8192)->algorithm, "ring");
  EXPECT_EQ(choices.find(Collective::all_reduce, 2, 500'000)->algorithm, "flat");
}

// Two tables whose size ranges do not touch: a choice of the lower range holds until the upper
// range begins.
TEST(Choices, NoRowWhereNothingWasMeasured) {
  std::vector<cost::Point> points;
  for (const double bytes : {8.0, 64.0, 512.0}) {
    points.push_back({Collective::all_reduce, "flat", 2, bytes, 1e-6 + 1e-9 * bytes});
  }
  for (const double bytes : {1e6, 1e7}) {
    points.push_back({Collective::all_reduce, "ring", 2, bytes, 1e-5 + 1e-10 * bytes});
  }
  const cost::Choices choices = make_choices(fit_machine(points), always_flat);
  ASSERT_EQ(choices.rows().size(), 3U);
  EXPECT_EQ(choices.rows()[0].algorithm, "flat");
  EXPECT_EQ(choices.rows()[1].algorithm, "ring");
  EXPECT_GT(choices.rows()[1].from_bytes, 5e5);
  EXPECT_EQ(choices.rows()[2], (cost::Choice{Collective::all_reduce, 2, 4e7, ""}));
}

TEST(Choices, GoOnAboveCallsOfNoBytes) {
  std::vector<cost::Point> points;
  for (const double bytes : {0.0, 64.0, 4096.0, 262144.0, 1e7}) {
    points.push_back({Collective::all_reduce, "flat", 2, bytes, 1e-6 + 1e-9 * bytes});
    points.push_back({Collective::all_reduce, "ring", 2, bytes, 1e-5 + 1e-10 * bytes});
  }
  const cost::Choices choices = make_choices(fit_machine(points), always_flat);
  ASSERT_EQ(choices.rows().size(), 3U);
  EXPECT_EQ(choices.rows()[1].algorithm, "ring");
}

TEST(Choices, OfTwoThatAreAsNearTheSmaller) {
  for (int k = 2; k < 200; ++k) {
    const int asked = k * (k + 1);  // k^2 relates to it as it relates to (k + 1)^2
    const int fewer = k * k;
    const cost::Choices choices({{Collective::all_reduce, fewer, 0, "flat"},
                                 {Collective::all_reduce, (k + 1) * (k + 1), 0, "ring"}});
    EXPECT_EQ(choices.find(Collective::all_reduce, asked, 8)->ranks, fewer);
  }
}

TEST(Choices, TheDefaultStaysWhereTheOtherIsLittleFaster) {
  std::vector<cost::Point> points;
  for (double bytes = 8; bytes < 1e6; bytes *= 2) {
    points.push_back({Collective::all_gather, "flat", 2, bytes, 1.03e-6 + 1.03e-9 * bytes});
    points.push_back({Collective::all_gather, "ring", 2, bytes, 1e-6 + 1e-9 * bytes});
  }
  const cost::Machine close = fit_machine(points);
  const cost::Choices stays = make_choices(close, always_flat);
  ASSERT_EQ(stays.rows().size(), 2U);
  EXPECT_EQ(stays.rows()[0].algorithm, "flat");
  const cost::Choices changes =
      make_choices(close, [](Collective, int, double) { return std::string_view("bruck"); });
  ASSERT_EQ(changes.rows().size(), 2U);
  EXPECT_EQ(changes.rows()[0].algorithm, "ring");
}

TEST(Choices, NothingIsChosenBeyondWhereItWasMeasured) {
  // flat is faster everywhere, but was not measured above 1 KiB.
  const cost::Choices choices = make_choices(machine(1e-2, 1024), always_flat);
  ASSERT_EQ(choices.rows().size(), 3U);
  EXPECT_EQ(choices.rows()[1].algorithm, "ring");
  EXPECT_NEAR(choices.rows()[1].from_bytes, 1448, 1);
}

TEST(Choices, AreReadBackFromTheMachine) {
  cost::NamedMachine before{.name = "m", .machine = machine(1e-5)};
  before.host = {.cpu = "a CPU", .cpus = 2};
  before.choices = make_choices(before.machine, always_flat);
  const std::string text = to_json(before);
  const auto after = cost::parse_machine_json(text, fit_machine);
  ASSERT_TRUE(after) << after.message;
  EXPECT_EQ(after.value->choices.rows(), before.choices.rows());
  EXPECT_EQ(after.value->host.cpu, "a CPU");
  EXPECT_EQ(after.value->host.cpus, 2);
  const auto alone = cost::parse_choices_json(text);
  ASSERT_TRUE(alone) << alone.message;
  EXPECT_EQ(alone.value->rows(), before.choices.rows());
}

TEST(Choices, AFileWithoutChoosesNothing) {
  const auto choices =
      cost::parse_choices_json(cost::to_json({.name = "m", .machine = machine(1e-5)}));
  ASSERT_TRUE(choices);
  EXPECT_TRUE(choices.value->rows().empty());
}

TEST(Choices, SaysWhatIsWrongAndWhere) {
  const std::string right =
      R"({"format": "unisono.machine/1", "choices": {"collective": ["all_gather"],)"
      R"( "ranks": [3], "from_bytes": [0], "algorithm": ["ring"]}})";
  ASSERT_TRUE(cost::parse_choices_json(right));
  struct Mistake {
    const char* from;
    const char* to;
    const char* message;
    const char* position;
  };
  const Mistake mistakes[] = {
      {"machine/1", "machine/2", "unknown version, this reads unisono.machine/1", "/format"},
      {"\"unisono.machine/1\"", "1", "a number where a string belongs", "/format"},
      {"all_gather", "all_gather_v", "the plain form is needed, it serves the v-form as well",
       "/choices/collective/0"},
      {"[\"all_gather\"]", "7", "a number where an array belongs", "/choices/collective"},
      {"[3]", "[]", "0 values where 1 belong", "/choices/ranks"},
      {"[3]", "[0]", "0 is not in 1..1000000000", "/choices/ranks/0"},
      {"[0]", "[\"0\"]", "a string where a number belongs", "/choices/from_bytes/0"},
      {"[0]", "[-1]", "-1 is not in 0..1e+18", "/choices/from_bytes/0"},
      {"[\"ring\"]", "[3]", "a number where a string belongs", "/choices/algorithm/0"},
      {"\"ring\"", "\"binomial\"", "unknown algorithm 'binomial'", "/choices/algorithm/0"},
      {"\"ring\"", "\"neighbour_exchange\"", "'neighbour_exchange' cannot serve 3 ranks",
       "/choices/algorithm/0"},
      {", \"algorithm\": [\"ring\"]", "", "key \"algorithm\" is missing", "/choices"},
      {"]}}", "]}",
       "not valid JSON: parse error at line 1, column 130: syntax error while parsing object - "
       "unexpected end of input; expected '}'",
       "byte 130"},
  };
  for (const Mistake& mistake : mistakes) {
    std::string wrong = right;
    wrong.replace(wrong.find(mistake.from), std::string(mistake.from).size(), mistake.to);
    const auto parsed = cost::parse_choices_json(wrong);
    EXPECT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.message, mistake.message) << wrong;
    EXPECT_EQ(parsed.position, mistake.position) << wrong;
  }
}

constexpr WaitPolicy kShort{.spin = 10, .yield_us = 20};
constexpr WaitPolicy kLong{.spin = 30000, .yield_us = 500};

TEST(Choices, OfWaitingTheOneThatIsWorthChanging) {
  const auto timed = [](bool oversubscribed, WaitPolicy policy, double bytes, double time_s) {
    return TimedWait{
        {.ranks = 4, .oversubscribed = oversubscribed, .policy = policy}, bytes, time_s};
  };
  const WaitPolicy usual = built_in_wait(true);
  // Twice as fast at one size, slightly slower at the other.
  std::vector<TimedWait> rows = {timed(true, usual, 8, 2e-6),   timed(true, usual, 64, 4e-6),
                                 timed(true, kShort, 8, 1e-6),  timed(true, kShort, 64, 4.4e-6),
                                 timed(true, kLong, 8, 1.9e-6), timed(true, kLong, 64, 3.9e-6)};
  EXPECT_EQ(choose_waits(rows), (std::vector<cost::WaitChoice>{{4, true, kShort}}));
  // One disturbed measurement out of three does not count.
  rows.insert(rows.end(), {timed(true, kShort, 8, 1e-6), timed(true, kShort, 8, 9)});
  EXPECT_EQ(choose_waits(rows), (std::vector<cost::WaitChoice>{{4, true, kShort}}));
  // A gain of 3 % is too small. Without the usual policy there is nothing to compare with.
  EXPECT_EQ(choose_waits(std::vector{rows[0], rows[1], rows[4], rows[5]}),
            (std::vector<cost::WaitChoice>{{4, true, usual}}));
  EXPECT_TRUE(choose_waits(std::vector{rows[2], rows[3]}).empty());
}

TEST(Choices, OfWaitingGoByRoomThenByRanks) {
  const cost::Choices choices(
      {}, {{2, false, kLong}, {4, true, kShort}, {16, true, kLong}, {1, false, kShort}});
  EXPECT_EQ(choices.find_wait(3, false)->policy, kLong);
  EXPECT_EQ(choices.find_wait(1, false)->policy, kShort);
  EXPECT_EQ(choices.find_wait(2, true)->policy, kShort);
  EXPECT_EQ(choices.find_wait(64, true)->policy, kLong);
  EXPECT_EQ(cost::Choices({}, {{2, false, kLong}}).find_wait(2, true), nullptr);
}

TEST(ChoicesJson, WaitsAreReadBack) {
  cost::NamedMachine before{.name = "m", .machine = machine(1e-5)};
  before.choices = cost::Choices({}, {{2, false, kLong}, {4, true, kShort}});
  const std::string text = to_json(before);
  EXPECT_EQ(cost::parse_choices_json(text).value->waits(), before.choices.waits());
  EXPECT_EQ(cost::parse_machine_json(text, fit_machine).value->choices.waits(),
            before.choices.waits());
  std::string wrong = text;
  wrong.replace(wrong.find("spin=10"), 7, "spinn=1");
  EXPECT_EQ(cost::parse_choices_json(wrong).position, "/waits/policy/1");
}

TimedThreads timed_threads(int threads, double bytes, double time_s,
                           Collective collective = Collective::all_reduce) {
  return {{.collective = collective, .ranks = 4, .from_bytes = bytes, .threads = threads}, time_s};
}

TEST(Choices, OfThreadsTheQuickestFromWhereItIsWorthIt) {
  std::vector<TimedThreads> rows = {
      timed_threads(1, 1e5, 10e-6),
      timed_threads(2, 1e5, 9.8e-6),
      timed_threads(4, 1e5, 20e-6),
      timed_threads(1, 1e6, 99e-6),
      timed_threads(2, 1e6, 60e-6),
      timed_threads(4, 1e6, 59e-6),
      timed_threads(1, 1e7, 9e-4),
      timed_threads(2, 1e7, 5e-4),
      timed_threads(4, 1e7, 4e-4),
      timed_threads(1, 1e7, 8e-4),
      timed_threads(2, 1e7, 5.1e-4),
      timed_threads(4, 1e7, 9e-4),
      timed_threads(1, 1e8, 8e-3),  // only one number was measured at this size
      timed_threads(1, 1e5, 1e-6, Collective::broadcast),
      timed_threads(2, 1e5, 2e-6, Collective::broadcast)};
  const std::vector<cost::ThreadChoice> chosen = {{Collective::all_reduce, 4, 0, 1},
                                                  {Collective::all_reduce, 4, 1e6, 2},
                                                  {Collective::all_reduce, 4, 1e7, 4},
                                                  {Collective::broadcast, 4, 0, 1}};
  auto found = choose_threads(rows);
  std::sort(found.begin(), found.end(),
            [](const cost::ThreadChoice& a, const cost::ThreadChoice& b) {
              return std::pair(to_string(a.collective), a.from_bytes) <
                     std::pair(to_string(b.collective), b.from_bytes);
            });
  EXPECT_EQ(found, chosen);
  // If the times with the usual number vary as much, a gain is noise.
  rows = {timed_threads(1, 1e6, 1e-4), timed_threads(1, 1e6, 2e-4), timed_threads(2, 1e6, 6e-5)};
  EXPECT_EQ(choose_threads(rows),
            (std::vector<cost::ThreadChoice>{{Collective::all_reduce, 4, 0, 1}}));
  EXPECT_TRUE(choose_threads({}).empty());
}

TEST(Choices, ThreadsGoBySizeAndNearestRanks) {
  const cost::Choices choices({}, {},
                              {{Collective::all_reduce, 8, 0, 1},
                               {Collective::all_reduce, 2, 1e6, 4},
                               {Collective::all_reduce, 2, 0, 2}});
  EXPECT_EQ(choices.find_threads(Collective::all_reduce, 2, 8)->threads, 2);
  EXPECT_EQ(choices.find_threads(Collective::all_reduce, 3, 1e6)->threads, 4);
  EXPECT_EQ(choices.find_threads(Collective::all_reduce, 16, 1e9)->threads, 1);
  EXPECT_EQ(choices.find_threads(Collective::all_reduce, 17, 1e9), nullptr);
  EXPECT_EQ(choices.find_threads(Collective::broadcast, 2, 8), nullptr);
}

TEST(ChoicesJson, ThreadsAreReadBack) {
  cost::NamedMachine before{.name = "m", .machine = machine(1e-5)};
  before.choices = cost::Choices(
      {}, {}, {{Collective::all_reduce, 2, 0, 1}, {Collective::all_reduce, 2, 1e6, 256}});
  const std::string text = to_json(before);
  EXPECT_EQ(cost::parse_choices_json(text).value->threads(), before.choices.threads());
  EXPECT_EQ(cost::parse_machine_json(text, fit_machine).value->choices.threads(),
            before.choices.threads());
  for (const char* number : {"257", "0", "1.5", "x"}) {
    std::string wrong = text;
    wrong.replace(wrong.find("256"), 3, number);
    EXPECT_FALSE(cost::parse_choices_json(wrong)) << number;
  }
  std::string wrong = text;
  wrong.replace(wrong.find("256"), 3, "257");
  EXPECT_EQ(cost::parse_choices_json(wrong).position, "/threads/threads/1");
  EXPECT_EQ(cost::parse_choices_json(wrong).message, "257 is not in 1..256");
}

}  // namespace
}  // namespace unisono::network_model
