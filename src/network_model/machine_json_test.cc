#include "cost/machine_json.h"
#include "network_model/fit_machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace unisono::network_model {
namespace {

cost::NamedMachine machine() {
  std::vector<cost::Point> points;
  for (int octave = 10; octave < 30; ++octave) {
    points.push_back({.collective = Collective::all_reduce,
                      .algorithm = octave % 2 == 0 ? "" : "ring",
                      .ranks = 4,
                      .bytes = std::exp2(octave),
                      .time_s = 1e-5 + std::exp2(octave) * 1e-10});
  }
  return {.name = "a \"machine\"", .machine = fit_machine(points)};
}

TEST(MachineJson, IsReadBack) {
  const cost::NamedMachine before = machine();
  const auto after = cost::parse_machine_json(to_json(before), fit_machine);
  ASSERT_TRUE(after) << after.message;
  EXPECT_EQ(after.value->name, before.name);
  ASSERT_EQ(after.value->machine.points().size(), before.machine.points().size());
  for (const char* algorithm : {"", "ring"}) {
    const double time = before.machine.time_s(Collective::all_reduce, algorithm, 6, 1e6);
    EXPECT_NEAR(after.value->machine.time_s(Collective::all_reduce, algorithm, 6, 1e6), time,
                1e-6 * time);
  }
}

struct Mistake {
  const char* from;
  const char* to;
  const char* message;
  const char* position;
};

TEST(MachineJson, SaysWhatIsWrongAndWhere) {
  const std::string right =
      R"({"format": "unisono.machine/1", "name": "m", "points": {"collective": ["barrier"],)"
      R"( "algorithm": [""], "ranks": [2], "bytes": [0], "time_us": [1.5]}})";
  ASSERT_TRUE(cost::parse_machine_json(right, fit_machine));
  const Mistake mistakes[] = {
      {"machine/1", "machine/9", "unknown version, this reads unisono.machine/1", "/format"},
      {"\"name\": \"m\"", "\"name\": 3", "a number where a string belongs", "/name"},
      {"\"name\": \"m\", ", "", "key \"name\" is missing", "/"},
      {"[\"barrier\"]", "[]", "there are no measurements", "/points/collective"},
      {"[\"barrier\"]", "[\"barier\"]", "\"barier\" is not a collective", "/points/collective/0"},
      {"[\"\"]", "[\"x\"]", "unknown algorithm", "/points/algorithm/0"},
      {"[2]", "[2, 3]", "2 values where 1 belong", "/points/ranks"},
      {"[2]", "[2.5]", "2.5 is not a whole number", "/points/ranks/0"},
      {"[0]", "[-1]", "-1 is not in 0..1e+18", "/points/bytes/0"},
      {"[1.5]", "[0]", "0 is not in 1e-06..1000000000000000", "/points/time_us/0"},
      {"[1.5]", "[1e-300]", "1e-300 is not in 1e-06..1000000000000000", "/points/time_us/0"},
      {"[0]", "[1e300]", "1e+300 is not in 0..1e+18", "/points/bytes/0"},
      {"[1.5]", "[\"1\"]", "a string where a number belongs", "/points/time_us/0"},
      {"[1.5]", "[1e999]", "a number is out of range", "byte 147"},
      {"[1.5]}}", "[1.5]}",
       "not valid JSON: parse error at line 1, column 148: syntax error while parsing object - "
       "unexpected end of input; expected '}'",
       "byte 148"},
  };
  for (const Mistake& mistake : mistakes) {
    std::string text = right;
    text.replace(text.find(mistake.from), std::string(mistake.from).size(), mistake.to);
    const auto parsed = cost::parse_machine_json(text, fit_machine);
    EXPECT_FALSE(parsed);
    EXPECT_EQ(parsed.message, mistake.message);
    EXPECT_EQ(parsed.position, mistake.position) << mistake.message;
  }
  EXPECT_EQ(cost::parse_machine_json("[]", fit_machine).message,
            "an array where an object belongs");
}

TEST(MachineJson, RefusesGroupsThatNobodyCanLookUp) {
  const std::string right = to_json(machine());
  const Mistake mistakes[] = {
      {"all_reduce/ring", "all_reduce/none", "unknown algorithm", "/groups/1/group"},
      {"all_reduce/ring", "all_reduce/ring:radix=2",
       "\"ring:radix=2\": there is no parameter \"radix\"", "/groups/1/group"},
      {"all_reduce/ring", "all_reduce", "a group is \"\" or COLLECTIVE/ALGORITHM",
       "/groups/1/group"},
      {"all_reduce/ring", "all_gather_v/ring", "a group is \"\" or COLLECTIVE/ALGORITHM",
       "/groups/1/group"},
      {"\"scale\":", "\"scale\": 1e101, \"was\":", "1e+101 is not in 1e-100..1e+100",
       "/groups/0/residuals/scale"},
  };
  for (const Mistake& mistake : mistakes) {
    std::string text = right;
    text.replace(text.find(mistake.from), std::string(mistake.from).size(), mistake.to);
    const auto parsed = cost::parse_machine_json(text, fit_machine);
    EXPECT_FALSE(parsed);
    EXPECT_EQ(parsed.message, mistake.message);
    EXPECT_EQ(parsed.position, mistake.position) << mistake.message;
  }
}

TEST(MachineJson, SurvivesEveryMutation) {
  const std::string right = to_json(machine());
  std::mt19937_64 random(7);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = right;
    for (int i = 0; i < 3; ++i) {
      const std::size_t place = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[place] = static_cast<char>(random());
          break;
        case 1:
          text.erase(place, 1 + random() % 8);
          break;
        case 2:
          text.insert(place, text.substr(random() % text.size(), 1 + random() % 8));
          break;
        default:
          text[place] = "0123456789-+e.,[]{}\""[random() % 21];
          break;
      }
    }
    const auto parsed = cost::parse_machine_json(text, fit_machine);
    ASSERT_NE(static_cast<bool>(parsed), !parsed.message.empty());
    if (parsed && parsed.value->machine.knows(Collective::all_reduce, "")) {
      ++read;
      parsed.value->machine.time_s(Collective::all_reduce, "", 6, 1e6);
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace unisono::network_model
