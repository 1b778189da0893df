#include "base/json.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/json_limits.h"
#include "base/json_text.h"

namespace unisono {
namespace {

void expect_refused(const std::string& text, const std::string& position,
                    const std::string& message) {
  const Parsed<JsonValue> parsed = parse_json(text);
  EXPECT_FALSE(parsed) << text;
  EXPECT_EQ(parsed.position, position);
  EXPECT_EQ(parsed.message, message);
}

// Returns the error message of a getter for the value of "a".
std::string said_of(const std::string& text, double (*get)(const JsonNode&)) {
  const auto parsed =
      parse_json_as<double>(text, [get](const JsonNode& node) { return get(node.at("a")); });
  return parsed ? "" : parsed.position + ": " + parsed.message;
}

TEST(Json, KeepsValuesInTheirOrder) {
  const Parsed<JsonValue> parsed =
      parse_json(R"({"b": [null, true, -3, 2.5, "x\ny"], "a/~": {}, "c": 18446744073709551615})");
  ASSERT_TRUE(parsed) << parsed.message;
  const JsonNode root(*parsed.value, "");
  EXPECT_EQ(root.keys(), (std::vector<std::string>{"b", "a/~", "c"}));
  const JsonNode list = root.at("b");
  ASSERT_EQ(list.size(), 5U);
  EXPECT_TRUE(list.item(0).is(JsonValue::Kind::null));
  EXPECT_TRUE(list.item(1).truth());
  EXPECT_EQ(list.item(2).whole(-5, 5), -3);
  EXPECT_EQ(list.item(3).number(0, 5), 2.5);
  EXPECT_EQ(list.item(4).text(), "x\ny");
  EXPECT_EQ(list.item(4).path(), "/b/4");
  EXPECT_EQ(root.at("a/~").path(), "/a~1~0");
  EXPECT_EQ(root.member(2).number(0, 1e20), 18446744073709551616.0);
  EXPECT_FALSE(root.find("d"));
}

TEST(Json, IsBounded) {
  std::string deep(16, '[');
  deep += std::string(16, ']');
  EXPECT_TRUE(parse_json(deep));
  expect_refused("[" + deep + "]", "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0", "nested more than 16 deep");
  const std::string name(4097, 'x');
  EXPECT_TRUE(parse_json("[\"" + name.substr(1) + "\"]"));
  expect_refused("[1, \"" + name + "\"]", "/1", "a string of more than 4096 bytes");
  expect_refused("{\"" + name + "\": 1}", "/", "a key of more than 4096 bytes");
  expect_refused("{\"a\": [1, 1e999]}", "byte 15", "a number is out of range");
}

// The check runs before the parser, which needs several times the memory of the text.
TEST(JsonExcess, CountsWithoutParsing) {
  const JsonLimits limits = {.depth = 2, .string_bytes = 4, .values = 5};
  for (const char* within :
       {"", "[[1]]", "[1, 2, 3, 4]", R"({"a\"]": "[[["})", R"(["\\", 1])", "]]]]", R"("[[[[)"}) {
    EXPECT_EQ(json_excess(within, limits).message, "") << within;
  }
  EXPECT_EQ(json_excess("[[1, [", limits).message, "nested more than 2 deep");
  EXPECT_EQ(json_excess("[[1, [", limits).byte, 5U);
  EXPECT_EQ(json_excess("[\"12345\"]", limits).message, "a string of more than 4 bytes");
  EXPECT_EQ(json_excess("[1,2,3,4,5]", limits).message, "more than 5 values");
  const JsonLimits unique = {.has_unique_keys = true};
  EXPECT_EQ(json_excess(R"({"a": 1, "b": {"a": 2, "c": 1, "c": 2}, "c": "a"})", unique).message,
            "");
  EXPECT_EQ(json_excess(R"({"a": "b", "b": 2, "a" : 3})", unique).message, "key \"a\" comes twice");
}

TEST(Json, SaysWhereItIsNoneAndWhatComesTwice) {
  expect_refused("{\"a\": 1,}", "byte 9",
                 "not valid JSON: parse error at line 1, column 9: syntax error while parsing "
                 "object key - unexpected '}'; expected string literal");
  expect_refused("[{\"a\": 1}, {\"b\": {\"a\": 1, \"a\": 2}}]", "/1/b", "key \"a\" comes twice");
  EXPECT_FALSE(parse_json("\"\xff\""));
  EXPECT_FALSE(parse_json(""));
  EXPECT_FALSE(parse_json("1 2"));
}

TEST(Json, LeavesOutKeysOfTheDocumentOnly) {
  const std::array<std::string_view, 2> left_out = {"a", "x"};
  const Parsed<JsonValue> parsed =
      parse_json(R"({"x": 1, "a": {"b": [1, {"a": 2}]}, "c": {"a": 3}, "a2": []})", left_out);
  ASSERT_TRUE(parsed) << parsed.message;
  const JsonNode root(*parsed.value, "");
  EXPECT_EQ(root.keys(), (std::vector<std::string>{"c", "a2"}));
  EXPECT_EQ(root.at("c").at("a").whole(0, 9), 3);
  EXPECT_FALSE(parse_json(R"({"a": {"b": 1, "b": 2}})", left_out));
  EXPECT_FALSE(parse_json(R"({"a": 1, "a": 2})", left_out));
}

TEST(JsonNode, SaysWhatBelongsThere) {
  const auto number = [](const JsonNode& node) { return node.number(0, 5); };
  EXPECT_EQ(said_of(R"({"a": 5})", number), "");
  EXPECT_EQ(said_of(R"({"a": 5.5})", number), "/a: 5.5 is not in 0..5");
  EXPECT_EQ(said_of(R"({"a": "5"})", number), "/a: a string where a number belongs");
  EXPECT_EQ(said_of(R"({"b": 5})", number), "/: key \"a\" is missing");
  EXPECT_EQ(said_of("[]", number), "/: an array where an object belongs");
  EXPECT_EQ(said_of(R"({"a": 0.5})",
                    [](const JsonNode& node) { return static_cast<double>(node.whole(0, 5)); }),
            "/a: 0.5 is not a whole number");
  const auto column = [](const JsonNode& node) {
    return static_cast<double>(node.column("b", 2).size());
  };
  EXPECT_EQ(said_of(R"({"a": {"b": [1, 2]}})", column), "");
  EXPECT_EQ(said_of(R"({"a": {"b": [1]}})", column), "/a/b: 1 values where 2 belong");
  const auto known = [](const JsonNode& node) {
    node.allow_only({"ranks", "root"});
    return 0.0;
  };
  EXPECT_EQ(said_of(R"({"a": {"rank": 1}})", known),
            "/a: unknown key \"rank\", did you mean \"ranks\"?");
}

TEST(JsonText, IsReadBack) {
  const std::string text = "a\"\\\n\x7f \xc3\xa9";
  EXPECT_EQ(parse_json(json_string(text)).value->text, text);
  EXPECT_EQ(json_string("ring"), "\"ring\"");
  EXPECT_EQ(json_string("\xff"), "\"\xef\xbf\xbd\"");
  for (const double value : {0.1, 1e-300, -12.0, 9007199254740993.0, 1e300}) {
    EXPECT_EQ(parse_json(json_number(value)).value->number, value);
  }
  EXPECT_EQ(json_number(12), "12");
  EXPECT_EQ(json_column("n", std::array{1.5, 2.0}, json_number), "\"n\": [1.5, 2]");
}

}  // namespace
}  // namespace unisono
