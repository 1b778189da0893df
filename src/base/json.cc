#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/json_text.h"
#include "base/private.h"
#include "base/words.h"

namespace unisono {
namespace {

constexpr std::size_t kMostValues = 4'000'000;
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

// Builds the tree. `open_` holds the arrays and objects that are still open.
class TreeReader : public JsonReader {
 public:
  explicit TreeReader(std::span<const std::string_view> left_out) : left_out_(left_out) {}
  JsonValue take() { return std::move(root_); }

 private:
  void null() override { add({}); }
  void truth(bool value) override { add({.kind = JsonValue::Kind::truth, .truth = value}); }
  void number(double value) override { add({.kind = JsonValue::Kind::number, .number = value}); }
  void text(std::string value) override {
    add({.kind = JsonValue::Kind::text, .text = std::move(value)});
  }
  void begin_object() override { open_.push_back({.kind = JsonValue::Kind::object}); }
  void begin_array() override { open_.push_back({.kind = JsonValue::Kind::array}); }
  void end_object() override { end(); }
  void end_array() override { end(); }
  void key(const std::string& name) override {
    if (depth() == 1 && std::find(left_out_.begin(), left_out_.end(), name) != left_out_.end()) {
      skip_value();
    } else {
      open_.back().keys.push_back(name);
    }
  }

  void end() {
    JsonValue value = std::move(open_.back());
    open_.pop_back();
    add(std::move(value));
  }

  void add(JsonValue value) {
    if (++values_ > kMostValues) {
      fail("more than 4000000 values");
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().members.push_back(std::move(value));
    }
  }

  std::span<const std::string_view> left_out_;
  std::vector<JsonValue> open_;
  JsonValue root_;
  std::size_t values_ = 0;
};

std::string_view kind_name(JsonValue::Kind kind) {
  constexpr std::array<std::string_view, 6> kNames = {"null",     "a truth value", "a number",
                                                      "a string", "an array",      "an object"};
  return kNames[static_cast<std::size_t>(kind)];
}

void expect_kind(const JsonNode& node, JsonValue::Kind found, JsonValue::Kind wanted) {
  if (found != wanted) {
    node.fail(std::string(kind_name(found)) + " where " + std::string(kind_name(wanted)) +
              " belongs");
  }
}

}  // namespace

UNISONO_PRIVATE std::string json_number(double value) {
  constexpr double kMostWhole = 9007199254740992.0;  // 2^53
  std::array<char, 32> buffer{};
  const bool whole = value == std::floor(value) && std::abs(value) < kMostWhole;
  const auto end = whole ? std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                         static_cast<std::int64_t>(value))
                         : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

UNISONO_PRIVATE void JsonNode::fail(const std::string& message) const {
  throw JsonProblem{message, path_.empty() ? "/" : path_};
}

UNISONO_PRIVATE const std::vector<std::string>& JsonNode::keys() const {
  expect_kind(*this, value_->kind, JsonValue::Kind::object);
  return value_->keys;
}

UNISONO_PRIVATE void JsonNode::allow_only(std::initializer_list<std::string_view> keys) const {
  for (const std::string& key : this->keys()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      fail("unknown key " + in_quotes(key) + suggestion(key, {keys.begin(), keys.size()}));
    }
  }
}

UNISONO_PRIVATE std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  const auto found = std::find(keys().begin(), keys().end(), key);
  if (found == keys().end()) {
    return std::nullopt;
  }
  const auto index = static_cast<std::size_t>(found - keys().begin());
  return JsonNode(value_->members[index], path_ + "/" + pointer_token(key));
}

UNISONO_PRIVATE JsonNode JsonNode::at(std::string_view key) const {
  std::optional<JsonNode> node = find(key);
  if (!node) {
    fail("key " + in_quotes(key) + " is missing");
  }
  return *node;
}

UNISONO_PRIVATE JsonNode JsonNode::member(std::size_t index) const {
  return {value_->members.at(index), path_ + "/" + pointer_token(keys().at(index))};
}

UNISONO_PRIVATE std::size_t JsonNode::size() const {
  expect_kind(*this, value_->kind, JsonValue::Kind::array);
  return value_->members.size();
}

UNISONO_PRIVATE JsonNode JsonNode::item(std::size_t index) const {
  return {value_->members.at(index), path_ + "/" + std::to_string(index)};
}

UNISONO_PRIVATE JsonNode JsonNode::column(std::string_view key, std::size_t size) const {
  JsonNode values = at(key);
  if (values.size() != size) {
    values.fail(std::to_string(values.size()) + " values where " + std::to_string(size) +
                " belong");
  }
  return values;
}

UNISONO_PRIVATE double JsonNode::number(double least, double most) const {
  expect_kind(*this, value_->kind, JsonValue::Kind::number);
  if (value_->number < least || value_->number > most) {
    fail(json_number(value_->number) + " is not in " + json_number(least) + ".." +
         json_number(most));
  }
  return value_->number;
}

UNISONO_PRIVATE std::int64_t JsonNode::whole(std::int64_t least, std::int64_t most) const {
  const double value = number(static_cast<double>(least), static_cast<double>(most));
  if (value != std::floor(value)) {
    fail(json_number(value) + " is not a whole number");
  }
  return static_cast<std::int64_t>(value);
}

bool JsonNode::truth() const {
  expect_kind(*this, value_->kind, JsonValue::Kind::truth);
  return value_->truth;
}

UNISONO_PRIVATE const std::string& JsonNode::text() const {
  expect_kind(*this, value_->kind, JsonValue::Kind::text);
  return value_->text;
}

UNISONO_PRIVATE Parsed<JsonValue> parse_json(std::string_view text,
                                             std::span<const std::string_view> left_out) {
  if (text.size() > kMostBytes) {
    return Parsed<JsonValue>::failure("more than 64 MiB", "byte " + std::to_string(kMostBytes));
  }
  TreeReader reader(left_out);
  try {
    reader.read(text);
  } catch (const JsonProblem& problem) {
    return Parsed<JsonValue>::failure(problem.message, problem.position);
  }
  return Parsed<JsonValue>::success(reader.take());
}

}  // namespace unisono
