// JSON trees, for documents that people write or keep: topologies, workloads, machines.
//
// The parser limits depth, bytes and the number of values, and reports the position of every error
// (json_reader.h). A JsonNode is a value with its JSON pointer. Its getters throw JsonProblem,
// which parse_json_as() turns into a Parsed failure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.h"
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

class JsonNode {
 public:
  JsonNode(const JsonValue& value, std::string path) : value_(&value), path_(std::move(path)) {}

  [[noreturn]] void fail(const std::string& message) const;
  const std::string& path() const { return path_; }
  bool is(JsonValue::Kind kind) const { return value_->kind == kind; }

  // For an object.
  void allow_only(std::initializer_list<std::string_view> keys) const;
  const std::vector<std::string>& keys() const;
  std::optional<JsonNode> find(std::string_view key) const;
  JsonNode at(std::string_view key) const;
  JsonNode member(std::size_t index) const;  // the value of keys()[index]

  // For an array.
  std::size_t size() const;
  JsonNode item(std::size_t index) const;
  JsonNode column(std::string_view key, std::size_t size) const;  // an array of `size` values

  // For a plain value.
  double number(double least, double most) const;
  std::int64_t whole(std::int64_t least, std::int64_t most) const;
  bool truth() const;
  const std::string& text() const;

 private:
  const JsonValue* value_;
  std::string path_;
};

// Skips the values of the top-level keys in `left_out`.
Parsed<JsonValue> parse_json(std::string_view text,
                             std::span<const std::string_view> left_out = {});

// Parses the document and returns the result of `read`, which is called with its JsonNode.
template <typename T, typename Read>
Parsed<T> parse_json_as(std::string_view text, const Read& read,
                        std::span<const std::string_view> left_out = {}) {
  const Parsed<JsonValue> document = parse_json(text, left_out);
  if (!document) {
    return Parsed<T>::failure(document.message, document.position);
  }
  try {
    return Parsed<T>::success(read(JsonNode(*document.value, "")));
  } catch (const JsonProblem& problem) {
    return Parsed<T>::failure(problem.message, problem.position);
  }
}

}  // namespace unisono
