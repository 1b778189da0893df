#include "topology/json_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/env.h"

namespace unisono {
namespace {

constexpr std::size_t kMostDepth = 16;
constexpr std::size_t kMostValues = 4'000'000;
constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return token;
}

// Builds the tree; `open_` are the arrays and objects that are not closed yet.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add({}); }
  bool boolean(bool value) override {
    return add({.kind = JsonValue::Kind::truth, .truth = value});
  }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool binary(binary_t&) override { return fail("binary data"); }
  bool string(string_t& value) override {
    if (value.size() > kMostText) {
      return fail("a string of more than 4096 bytes");
    }
    return add({.kind = JsonValue::Kind::text, .text = std::move(value)});
  }

  bool start_object(std::size_t) override { return start(JsonValue::Kind::object); }
  bool start_array(std::size_t) override { return start(JsonValue::Kind::array); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    JsonValue& object = open_.back();
    if (name.size() > kMostText) {
      return fail("a key of more than 4096 bytes");
    }
    if (!keys_.back().insert(name).second) {
      return fail("key " + in_quotes(name) + " comes twice");
    }
    object.keys.push_back(std::move(name));
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::json::exception& error) override {
    std::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    constexpr std::size_t kMostShown = 160;
    problem_ = {"not valid JSON: " + std::string(what.substr(0, kMostShown)),
                "byte " + std::to_string(byte)};
    return false;
  }

  const JsonProblem& problem() const { return problem_; }
  JsonValue take() { return std::move(root_); }

 private:
  bool number(double value) {
    return std::isfinite(value) ? add({.kind = JsonValue::Kind::number, .number = value})
                                : fail("a number out of range");
  }

  bool start(JsonValue::Kind kind) {
    if (open_.size() == kMostDepth) {
      return fail("nested more than 16 deep");
    }
    open_.push_back({.kind = kind});
    keys_.emplace_back();
    return true;
  }

  bool end() {
    JsonValue value = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    return add(std::move(value));
  }

  bool add(JsonValue value) {
    if (++values_ > kMostValues) {
      return fail("more than 4000000 values");
    }
    if (open_.empty()) {
      root_ = std::move(value);
    } else {
      open_.back().members.push_back(std::move(value));
    }
    return true;
  }

  bool fail(std::string message) {
    problem_.message = std::move(message);
    for (const JsonValue& value : open_) {
      const bool named =
          value.kind == JsonValue::Kind::object && value.keys.size() > value.members.size();
      if (named) {
        problem_.position += "/" + pointer_token(value.keys.back());
      } else if (value.kind == JsonValue::Kind::array) {
        problem_.position += "/" + std::to_string(value.members.size());
      }
    }
    if (problem_.position.empty()) {
      problem_.position = "/";
    }
    return false;
  }

  std::vector<JsonValue> open_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each of them
  JsonValue root_;
  std::size_t values_ = 0;
  JsonProblem problem_;
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

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMostShown = 40;
  std::string result = "\"";
  for (const char c : text.substr(0, kMostShown)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return result + (text.size() > kMostShown ? "...\"" : "\"");
}

std::string json_string(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += "\\u00";
      result += kHex[byte >> 4U];
      result += kHex[byte & 0xfU];
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string json_number(double value) {
  constexpr double kMostWhole = 9007199254740992.0;  // 2^53
  std::array<char, 32> buffer{};
  const bool whole = value == std::floor(value) && std::abs(value) < kMostWhole;
  const auto end = whole ? std::to_chars(buffer.data(), buffer.data() + buffer.size(),
                                         static_cast<std::int64_t>(value))
                         : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

void JsonNode::fail(const std::string& message) const {
  throw JsonProblem{message, path_.empty() ? "/" : path_};
}

const std::vector<std::string>& JsonNode::keys() const {
  expect_kind(*this, value_->kind, JsonValue::Kind::object);
  return value_->keys;
}

void JsonNode::allow_only(std::initializer_list<std::string_view> keys) const {
  for (const std::string& key : this->keys()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::vector<std::string_view> known(keys);
      const std::string_view near = nearest_word(key, known);
      fail("unknown key " + in_quotes(key) +
           (near.empty() ? "" : ", did you mean " + in_quotes(near) + "?"));
    }
  }
}

std::optional<JsonNode> JsonNode::find(std::string_view key) const {
  const auto found = std::find(keys().begin(), keys().end(), key);
  if (found == keys().end()) {
    return std::nullopt;
  }
  const auto index = static_cast<std::size_t>(found - keys().begin());
  return JsonNode(value_->members[index], path_ + "/" + pointer_token(key));
}

JsonNode JsonNode::at(std::string_view key) const {
  std::optional<JsonNode> node = find(key);
  if (!node) {
    fail("key " + in_quotes(key) + " is missing");
  }
  return *node;
}

JsonNode JsonNode::member(std::size_t index) const {
  return {value_->members.at(index), path_ + "/" + pointer_token(keys().at(index))};
}

std::size_t JsonNode::size() const {
  expect_kind(*this, value_->kind, JsonValue::Kind::array);
  return value_->members.size();
}

JsonNode JsonNode::item(std::size_t index) const {
  return {value_->members.at(index), path_ + "/" + std::to_string(index)};
}

double JsonNode::number(double least, double most) const {
  expect_kind(*this, value_->kind, JsonValue::Kind::number);
  if (value_->number < least || value_->number > most) {
    fail(json_number(value_->number) + " is not in " + json_number(least) + ".." +
         json_number(most));
  }
  return value_->number;
}

std::int64_t JsonNode::whole(std::int64_t least, std::int64_t most) const {
  const double value = number(static_cast<double>(least), static_cast<double>(most));
  if (value != std::floor(value)) {
    fail(json_number(value) + " is no whole number");
  }
  return static_cast<std::int64_t>(value);
}

bool JsonNode::truth() const {
  expect_kind(*this, value_->kind, JsonValue::Kind::truth);
  return value_->truth;
}

const std::string& JsonNode::text() const {
  expect_kind(*this, value_->kind, JsonValue::Kind::text);
  return value_->text;
}

Parsed<JsonValue> parse_json(std::string_view text) {
  if (text.size() > kMostBytes) {
    return Parsed<JsonValue>::failure("more than 64 MiB", "byte " + std::to_string(kMostBytes));
  }
  Reader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) {
    return Parsed<JsonValue>::failure(reader.problem().message, reader.problem().position);
  }
  return Parsed<JsonValue>::success(reader.take());
}

}  // namespace unisono
