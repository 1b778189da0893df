// JSON as a tree, for the small documents that people write: topologies, workloads.
//
// Reading is bounded in depth and in the number of values, and every mistake has a place: "byte N"
// where the text is no JSON, else a JSON pointer. JsonNode is a value together with its pointer;
// its getters throw JsonProblem, which the parser of a document turns into a Parsed failure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parsed.h"

namespace unisono {

struct JsonValue {
  enum class Kind : std::uint8_t { null, truth, number, text, array, object };
  Kind kind = Kind::null;
  bool truth = false;
  double number = 0;
  std::string text = {};
  std::vector<std::string> keys = {};   // of an object
  std::vector<JsonValue> members = {};  // of an object, one per key; or the items of an array
};

struct JsonProblem {
  std::string message;
  std::string position;
};

class JsonNode {
 public:
  JsonNode(const JsonValue& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& message) const;
  const std::string& path() const { return path_; }
  bool is(JsonValue::Kind kind) const { return value_->kind == kind; }

  // Of an object.
  void allow_only(std::initializer_list<std::string_view> keys) const;
  const std::vector<std::string>& keys() const;
  std::optional<JsonNode> find(std::string_view key) const;
  JsonNode at(std::string_view key) const;
  JsonNode member(std::size_t index) const;  // the value of keys()[index]

  // Of an array.
  std::size_t size() const;
  JsonNode item(std::size_t index) const;

  // Of a plain value.
  double number(double least, double most) const;
  std::int64_t whole(std::int64_t least, std::int64_t most) const;
  bool truth() const;
  const std::string& text() const;

 private:
  const JsonValue* value_;
  std::string path_;
};

// `text` in quotes, short and without control characters, for messages.
std::string in_quotes(std::string_view text);
// `text` as a JSON string.
std::string json_string(std::string_view text);
// The shortest form that reads back as the same number.
std::string json_number(double value);

Parsed<JsonValue> parse_json(std::string_view text);

}  // namespace unisono
