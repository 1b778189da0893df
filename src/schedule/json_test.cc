#include "schedule/json.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "schedule/verify.h"

namespace unisono {
namespace {

// The smallest document that contains every key: rank 0 sends chunks 0 and 1 to rank 1.
constexpr std::string_view kDocument = R"({
  "format": "unisono.schedule/1",
  "collective": "broadcast",
  "algorithm": "mine",
  "ranks": 2,
  "root": 0,
  "chunks": 2,
  "steps": 2,
  "file": "mine.cc",
  "phases": {
    "name": ["send"],
    "first_step": [0]
  },
  "moves": {
    "step": [0, 1],
    "from": [0, 0],
    "to": [1, 1],
    "chunk": [0, 1],
    "chunks": [1, 1],
    "source": ["input", "input"],
    "target": ["output", "output"],
    "combine": ["replace", "replace"],
    "line": [7, 8]
  }
}
)";

// Returns the document with one text in it replaced by another text.
std::string with(std::string_view from, std::string_view to) {
  std::string text(kDocument);
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Json, ARootIsForRootedCollectives) {
  const Parsed<Schedule> rooted = parse_schedule_json(with("\"root\": 0,", ""));
  EXPECT_EQ(rooted.position, "/root");
  EXPECT_EQ(rooted.message, "missing; broadcast has a root");

  std::string text = with("\"broadcast\"", "\"all_gather\"");
  const std::string_view root = "\"root\": 0,";
  text.replace(text.find(root), root.size(), "");
  const Parsed<Schedule> without = parse_schedule_json(text);
  ASSERT_TRUE(without) << without.position << ": " << without.message;
  EXPECT_EQ(without.value->root, 0);

  text = with("\"broadcast\"", "\"all_gather\"");
  text.replace(text.find(root), root.size(), "\"root\": 1,");
  const Parsed<Schedule> wrong = parse_schedule_json(text);
  EXPECT_EQ(wrong.position, "/root");
  EXPECT_EQ(wrong.message, "1, but all_gather has no root; leave it out");
}

TEST(Json, ReadsEveryField) {
  const Parsed<Schedule> parsed = parse_schedule_json(kDocument);
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  const Schedule& schedule = *parsed.value;
  EXPECT_EQ(schedule.collective, Collective::broadcast);
  EXPECT_EQ(schedule.algorithm, "mine");
  EXPECT_EQ(schedule.file, "mine.cc");
  EXPECT_EQ(schedule.steps, 2);
  ASSERT_EQ(schedule.phases.size(), 1U);
  EXPECT_EQ(schedule.phases[0].name, "send");
  ASSERT_EQ(schedule.moves.size(), 2U);
  const Move expected{.step = 1,
                      .from = 0,
                      .to = 1,
                      .chunk = 1,
                      .source = Buffer::input,
                      .target = Buffer::output,
                      .line = 8};
  EXPECT_EQ(schedule.moves[1], expected);
  EXPECT_TRUE(verify(schedule).empty());
}

TEST(Json, WritesWhatItReads) {
  EXPECT_EQ(to_json(*parse_schedule_json(kDocument).value), kDocument);
}

TEST(Json, EscapesNames) {
  Schedule schedule = *parse_schedule_json(kDocument).value;
  schedule.algorithm = "a \"quoted\" \\ name, \u00e9";
  EXPECT_EQ(parse_schedule_json(to_json(schedule)).value->algorithm, schedule.algorithm);
  schedule.algorithm = "line\nend";  // written as valid JSON, but not taken as a name
  EXPECT_EQ(parse_schedule_json(to_json(schedule)).position, "/algorithm");
}

TEST(Json, FillsInWhatMayBeLeftOut) {
  std::string text = with("  \"algorithm\": \"mine\",\n", "");
  text.erase(text.find("  \"file\""), text.find("  \"moves\"") - text.find("  \"file\""));
  text.erase(text.find("    \"chunks\": [1"), std::string("    \"chunks\": [1, 1],\n").size());
  text.erase(text.find(",\n    \"line\""), std::string(",\n    \"line\": [7, 8]").size());
  const Parsed<Schedule> parsed = parse_schedule_json(text);
  ASSERT_TRUE(parsed) << parsed.position << ": " << parsed.message;
  EXPECT_TRUE(parsed.value->phases.empty());
  EXPECT_EQ(parsed.value->moves[1].chunks, 1);
  EXPECT_EQ(parsed.value->moves[1].line, 0U);
  EXPECT_TRUE(verify(*parsed.value).empty());
}

struct Wrong {
  const char* name;
  const char* from;  // in the document
  const char* to;
  const char* position;
  const char* message;
};

class WrongJson : public testing::TestWithParam<Wrong> {};

TEST_P(WrongJson, IsLocated) {
  const Parsed<Schedule> parsed = parse_schedule_json(with(GetParam().from, GetParam().to));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.position, GetParam().position);
  EXPECT_EQ(parsed.message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongJson,
    testing::Values(
        Wrong{"version", "schedule/1", "schedule/2", "/format",
              "unknown version \"unisono.schedule/2\", this reads unisono.schedule/1"},
        Wrong{"no_version", "  \"format\": \"unisono.schedule/1\",\n", "", "/format", "missing"},
        Wrong{"collective", "\"broadcast\"", "\"multicast\"", "/collective",
              "\"multicast\" is not a collective"},
        Wrong{"unknown_key", "\"root\"", "\"boot\"", "/", "unknown key \"boot\""},
        Wrong{"path_as_key", "\"root\": 0", "\"moves/step\": [0]", "/",
              "unknown key \"moves/step\""},
        Wrong{"key_with_controls", "\"root\"", "\"\\u001b[2J\"", "/", "unknown key \"?[2J\""},
        Wrong{"unknown_column", "\"line\"", "\"lines\"", "/moves", "unknown key \"lines\""},
        Wrong{"key_twice", "\"root\": 0", "\"ranks\": 2", "/", "key \"ranks\" comes twice"},
        Wrong{"moves_twice",
              "\"phases\": {\n    \"name\": [\"send\"],\n    \"first_step\": [0]\n  }",
              "\"moves\": {}", "/", "key \"moves\" comes twice"},
        Wrong{"missing", "  \"ranks\": 2,\n", "", "/ranks", "missing"},
        Wrong{"missing_column", "    \"to\": [1, 1],\n", "", "/moves/to", "missing"},
        Wrong{"missing_phase_steps", ",\n    \"first_step\": [0]", "", "/phases/first_step",
              "missing"},
        Wrong{"text_for_number", "\"ranks\": 2", "\"ranks\": \"2\"", "/ranks",
              "a string where a number belongs"},
        Wrong{"number_for_text", "\"mine\"", "5", "/algorithm", "a number where a string belongs"},
        Wrong{"null", "\"ranks\": 2", "\"ranks\": null", "/ranks", "null where a number belongs"},
        Wrong{"truth", "\"ranks\": 2", "\"ranks\": true", "/ranks",
              "a truth value where a number belongs"},
        Wrong{"fraction", "\"ranks\": 2", "\"ranks\": 2.0", "/ranks",
              "no whole number in range where a number belongs"},
        Wrong{"too_long", "\"ranks\": 2", "\"ranks\": 99999999999999999999", "/ranks",
              "no whole number in range where a number belongs"},
        Wrong{"no_ranks", "\"ranks\": 2", "\"ranks\": 0", "/ranks", "0 is not in 1..4096"},
        Wrong{"many_ranks", "\"ranks\": 2", "\"ranks\": 4097", "/ranks", "4097 is not in 1..4096"},
        Wrong{"many_chunks", "\"chunks\": 2", "\"chunks\": 16777217", "/chunks",
              "16777217 is not in 1..16777216"},
        Wrong{"64_bits", "\"chunks\": 2", "\"chunks\": 18446744073709551615", "/chunks",
              "no whole number in range where a number belongs"},
        Wrong{"negative_root", "\"root\": 0", "\"root\": -1", "/root", "-1 is not in 0..4095"},
        Wrong{"root_beyond", "\"root\": 0", "\"root\": 2", "/root", "2, but there are 2 ranks"},
        Wrong{"negative", "\"from\": [0, 0]", "\"from\": [0, -3]", "/moves/from/1",
              "-3 is not in 0..4095"},
        Wrong{"rank_beyond", "\"to\": [1, 1]", "\"to\": [1, 2]", "/moves/to/1",
              "2, but there are 2 ranks"},
        Wrong{"chunk_beyond", "\"chunk\": [0, 1]", "\"chunk\": [0, 2]", "/moves/chunk/1",
              "2, but there are 2 chunks"},
        Wrong{"range_beyond", "\"chunks\": [1, 1]", "\"chunks\": [1, 2]", "/moves/chunks/1",
              "2, but there are 2 chunks"},
        Wrong{"empty_range", "\"chunks\": [1, 1]", "\"chunks\": [0, 1]", "/moves/chunks/0",
              "0 is not in 1..16777216"},
        Wrong{"step_beyond", "\"step\": [0, 1]", "\"step\": [0, 2]", "/moves/step/1",
              "2, but there are 2 steps"},
        Wrong{"steps_fall", "\"step\": [0, 1]", "\"step\": [1, 0]", "/moves/step/1",
              "steps must not fall"},
        Wrong{"phase_beyond", "\"first_step\": [0]", "\"first_step\": [2]", "/phases/first_step/0",
              "2, but there are 2 steps"},
        Wrong{"short_column", "\"to\": [1, 1]", "\"to\": [1]", "/moves/to",
              "1 values, but /moves/step has 2"},
        Wrong{"long_optional_column", "\"line\": [7, 8]", "\"line\": [7, 8, 9]", "/moves/line",
              "3 values, but /moves/step has 2"},
        Wrong{"empty_optional_column", "\"line\": [7, 8]", "\"line\": []", "/moves/line",
              "0 values, but /moves/step has 2"},
        Wrong{"short_phases", "\"first_step\": [0]", "\"first_step\": []", "/phases/first_step",
              "0 values, but /phases/name has 1"},
        Wrong{"buffer", "\"input\"]", "\"inputs\"]", "/moves/source/1",
              "\"inputs\" is not one of input, output, scratch"},
        Wrong{"combine", "\"replace\"]", "\"add\"]", "/moves/combine/1",
              "\"add\" is not one of replace, reduce"},
        Wrong{"number_for_word", "\"replace\"]", "1]", "/moves/combine/1",
              "a number where one of replace, reduce belongs"},
        Wrong{"scalar_for_column", "\"to\": [1, 1]", "\"to\": 1", "/moves/to",
              "a number where an array belongs"},
        Wrong{"column_for_scalar", "\"ranks\": 2", "\"ranks\": [2]", "/ranks",
              "an array where a number belongs"},
        Wrong{"object_for_scalar", "\"ranks\": 2", "\"ranks\": {}", "/ranks",
              "an object where a number belongs"},
        Wrong{"nested_column", "\"to\": [1, 1]", "\"to\": [1, [1]]", "/moves/to/1",
              "an array where a number belongs"},
        Wrong{"object_in_column", "\"to\": [1, 1]", "\"to\": [{}, 1]", "/moves/to/0",
              "an object where a number belongs"},
        Wrong{"scalar_for_moves", "\"phases\": {", "\"moves\": 3, \"phases\": {", "/moves",
              "a number where an object belongs"},
        Wrong{"control_characters", "\"mine\"", "\"\\u001b]0;x\\u0007\"", "/algorithm",
              "a name of more than 1024 bytes or with control characters"},
        Wrong{
            "trailing", "\n  }\n}\n", "\n  }\n} 1", "byte 477",
            "not valid JSON: parse error at line 25, column 3: syntax error while parsing value - "
            "unexpected number literal; expected end of input"}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(WrongJson, IsLocatedAtTheTop) {
  for (const char* text : {"[]", "3", "null", "\"x\""}) {
    const Parsed<Schedule> parsed = parse_schedule_json(text);
    EXPECT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.position, "/") << text;
    EXPECT_NE(parsed.message.find(", not an object"), std::string::npos) << parsed.message;
  }
  EXPECT_EQ(parse_schedule_json("").position, "byte 1");
  EXPECT_EQ(parse_schedule_json("{}").position, "/format");
}

TEST(WrongJson, IsFoundWhereverTheFileEnds) {
  const std::size_t end = kDocument.rfind('}');
  for (std::size_t size = 0; size <= end; ++size) {
    const Parsed<Schedule> parsed = parse_schedule_json(kDocument.substr(0, size));
    ASSERT_FALSE(parsed) << size;
    ASSERT_EQ(parsed.position.rfind("byte ", 0), 0U) << parsed.position;
    ASSERT_FALSE(parsed.message.empty());
  }
  EXPECT_TRUE(parse_schedule_json(kDocument.substr(0, end + 1)));
}

TEST(WrongJson, MayBeNestedAsDeepAsItLikes) {
  const std::string arrays(1'000'000, '[');
  EXPECT_EQ(parse_schedule_json(arrays).position, "/");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"moves\":";
  }
  EXPECT_EQ(parse_schedule_json(objects).position, "/moves");
  EXPECT_EQ(parse_schedule_json("{\"moves\":{\"to\":" + arrays).position, "/moves/to/0");
}

TEST(WrongJson, IsRefusedBeforeALongStringIsRead) {
  const std::string name(100'000, 'x');
  EXPECT_EQ(parse_schedule_json("{\"algorithm\":\"" + name + "\"}").position, "byte 13");
  const Parsed<Schedule> parsed = parse_schedule_json("{\"" + name + "\": 1}");
  EXPECT_LT(parsed.message.size(), 100U);
}

// If a damaged file is accepted, verify() must not crash on it, and it must survive writing and
// reading; if it is refused, the error has a position.
TEST(WrongJson, MayBeDamagedAnywhere) {
  constexpr std::string_view kBytes =
      "0123456789-,:[]{}\"\\ \n\x01\xff"
      "etuinx";
  std::mt19937 random(20240117);  // NOLINT(cert-msc51-cpp): the same damage each time
  const auto below = [&random](std::size_t n) { return random() % n; };
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text(kDocument);
    for (std::size_t damage = below(3) + 1; damage > 0; --damage) {
      const std::size_t at = below(text.size());
      switch (below(3)) {
        case 0:
          text[at] = kBytes[below(kBytes.size())];
          break;
        case 1:
          text.insert(at, 1, kBytes[below(kBytes.size())]);
          break;
        default:
          text.erase(at, below(8));
      }
    }
    const Parsed<Schedule> parsed = parse_schedule_json(text);
    if (!parsed) {
      ASSERT_FALSE(parsed.message.empty()) << text;
      ASSERT_FALSE(parsed.position.empty()) << text;
      continue;
    }
    ++read;
    (void)verify(*parsed.value);
    (void)verify_in_place(*parsed.value);
    ASSERT_TRUE(parse_schedule_json(to_json(*parsed.value))) << text;
  }
  EXPECT_GT(read, 100);
  EXPECT_LT(read, 19'000);
}

}  // namespace
}  // namespace unisono
