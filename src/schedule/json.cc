#include "schedule/json.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/json_fields.h"

namespace unisono {
namespace {

using namespace json_fields;

constexpr std::size_t kMostMoves = 50'000'000;
constexpr std::size_t kMostName = 1024;

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMostShown = 40;
  std::string result = "\"";
  for (const char c : text.substr(0, kMostShown)) {
    result += has_control_characters({&c, 1}) ? '?' : c;
  }
  return result + (text.size() > kMostShown ? "...\"" : "\"");
}

// Takes the document as a stream of values, so that memory is only spent on values that have a
// place, and nesting on none.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return wrong_type("null"); }
  bool boolean(bool) override { return wrong_type("a truth value"); }
  bool number_float(number_float_t, const string_t&) override {
    return wrong_type("no whole number in range");
  }
  bool binary(binary_t&) override { return wrong_type("binary data"); }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX)));
  }

  bool string(string_t& value) override {
    const Field* field = expected();
    if (field == nullptr || field->type == Type::number) {
      return wrong_type("a string");
    }
    if (field->type == Type::word) {
      const auto found = std::find(field->words.begin(), field->words.end(), value);
      if (found == field->words.end()) {
        return fail(in_quotes(value) + " is none of " + words_of(*field));
      }
      return add(static_cast<std::int32_t>(found - field->words.begin()));
    }
    if (value.size() > kMostName || has_control_characters(value)) {
      return fail("a name of more than 1024 bytes or with control characters");
    }
    if (field_ == kFormatField && value != kScheduleFormat) {
      return fail("unknown version " + in_quotes(value) + ", this reads " +
                  std::string(kScheduleFormat));
    }
    if (room()) {
      values_[field_].names.push_back(std::move(value));
    }
    return !failed();
  }

  bool start_object(std::size_t) override {
    if (!started_) {
      started_ = true;
      return true;
    }
    if (group_.empty() && !in_column_ && (path_ == "/phases" || path_ == "/moves")) {
      group_ = path_;
      return true;
    }
    return wrong_type("an object");
  }

  bool key(string_t& name) override {
    path_ = group_ + "/" + name;
    if (name.find('/') != std::string::npos) {
      path_ = group_;
      return fail("unknown key " + in_quotes(name));
    }
    const auto found = std::find_if(kFields.begin(), kFields.end(),
                                    [this](const Field& field) { return field.path == path_; });
    field_ = static_cast<std::size_t>(found - kFields.begin());
    const bool is_group = path_ == "/phases" || path_ == "/moves";
    if (found == kFields.end() && !is_group) {
      path_ = group_;
      return fail("unknown key " + in_quotes(name));
    }
    bool& seen = is_group ? (path_ == "/moves" ? moves_seen_ : phases_seen_) : values_[field_].seen;
    return std::exchange(seen, true) ? fail("key comes twice") : true;
  }

  bool end_object() override {
    group_.clear();
    return true;
  }

  bool start_array(std::size_t) override {
    if (field_ >= kFieldCount || !kFields[field_].column || in_column_) {
      return wrong_type("an array");
    }
    in_column_ = true;
    return true;
  }

  bool end_array() override {
    in_column_ = false;
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    constexpr std::size_t kMostShown = 160;
    message_ = "not valid JSON: " + std::string(what.substr(0, kMostShown));
    position_ = "byte " + std::to_string(byte);
    return false;
  }

  bool failed() const { return !message_.empty(); }
  const std::string& message() const { return message_; }
  const std::string& position() const { return position_; }
  bool has_phases() const { return phases_seen_; }

  Values& of(FieldIndex field) { return values_[field]; }

 private:
  // The field that a value here belongs to, nullptr if none may be here.
  const Field* expected() const {
    if (!started_ || field_ >= kFieldCount || kFields[field_].column != in_column_) {
      return nullptr;
    }
    return &kFields[field_];
  }

  bool number(std::int64_t value) {
    const Field* field = expected();
    if (field == nullptr || field->type != Type::number) {
      return wrong_type("a number");
    }
    if (value < field->least || value > field->most) {
      return fail(std::to_string(value) + " is not in " + std::to_string(field->least) + ".." +
                  std::to_string(field->most));
    }
    return add(static_cast<std::int32_t>(value));
  }

  bool add(std::int32_t value) {
    if (room()) {
      values_[field_].numbers.push_back(value);
    }
    return !failed();
  }

  bool room() { return values_[field_].size() < kMostMoves || fail("more than 50000000 moves"); }

  bool wrong_type(std::string_view found) {
    const Field* field = expected();
    if (!started_) {
      return fail("the document is " + std::string(found) + ", not an object");
    }
    if (field == nullptr) {
      const bool column = field_ < kFieldCount && !in_column_;
      return fail(std::string(found) + " where " + (column ? "an array" : "an object") +
                  " belongs");
    }
    const std::string wanted = field->type == Type::number ? "a number"
                               : field->type == Type::word ? "one of " + words_of(*field)
                                                           : "a string";
    return fail(std::string(found) + " where " + wanted + " belongs");
  }

  static std::string words_of(const Field& field) {
    std::string words;
    for (const std::string_view word : field.words) {
      words += (words.empty() ? "" : ", ") + std::string(word);
    }
    return words;
  }

  bool fail(std::string message) {
    message_ = std::move(message);
    position_ = path_;
    if (in_column_) {
      position_ += "/" + std::to_string(values_[field_].size());
    }
    if (position_.empty()) {
      position_ = "/";
    }
    return false;
  }

  std::array<Values, kFieldCount> values_;
  std::string group_;  // "", "/phases" or "/moves"
  std::string path_;
  std::size_t field_ = kFieldCount;
  bool started_ = false;
  bool in_column_ = false;
  bool moves_seen_ = false;
  bool phases_seen_ = false;
  std::string message_;
  std::string position_;
};

struct Problem {
  std::string message;
  std::string position;
};

std::optional<Problem> check_presence(Reader& reader) {
  for (std::size_t i = 0; i < kFieldCount; ++i) {
    const Field& field = kFields[i];
    const bool of_phases = reader.has_phases() && (i == kPhaseName || i == kPhaseFirstStep);
    if ((field.required || of_phases) && !reader.of(static_cast<FieldIndex>(i)).seen) {
      return Problem{"missing", std::string(field.path)};
    }
  }
  const auto differs = [&reader](FieldIndex column, FieldIndex like) -> std::optional<Problem> {
    const std::size_t found = reader.of(column).size();
    const std::size_t wanted = reader.of(like).size();
    if (found == wanted || !reader.of(column).seen) {
      return std::nullopt;
    }
    return Problem{std::to_string(found) + " values, but " + std::string(kFields[like].path) +
                       " has " + std::to_string(wanted),
                   std::string(kFields[column].path)};
  };
  if (auto problem = differs(kPhaseFirstStep, kPhaseName)) {
    return problem;
  }
  for (std::size_t i = kMoveFrom; i < kFieldCount; ++i) {
    if (auto problem = differs(static_cast<FieldIndex>(i), kMoveStep)) {
      return problem;
    }
  }
  return std::nullopt;
}

Problem at(FieldIndex field, std::size_t index, std::string message) {
  return {std::move(message), std::string(kFields[field].path) + "/" + std::to_string(index)};
}

std::optional<Problem> check_ranges(const Schedule& schedule) {
  const auto of = [](int value, const char* what, int count) {
    return std::to_string(value) + ", but there are " + std::to_string(count) + what;
  };
  if (schedule.root >= schedule.ranks) {
    return Problem{of(schedule.root, " ranks", schedule.ranks), "/root"};
  }
  for (std::size_t i = 0; i < schedule.phases.size(); ++i) {
    if (schedule.phases[i].first_step >= schedule.steps) {
      return at(kPhaseFirstStep, i, of(schedule.phases[i].first_step, " steps", schedule.steps));
    }
  }
  for (std::size_t i = 0; i < schedule.moves.size(); ++i) {
    const Move& move = schedule.moves[i];
    if (move.step >= schedule.steps) {
      return at(kMoveStep, i, of(move.step, " steps", schedule.steps));
    }
    if (i > 0 && move.step < schedule.moves[i - 1].step) {
      return at(kMoveStep, i, "steps must not fall");
    }
    if (move.from >= schedule.ranks) {
      return at(kMoveFrom, i, of(move.from, " ranks", schedule.ranks));
    }
    if (move.to >= schedule.ranks) {
      return at(kMoveTo, i, of(move.to, " ranks", schedule.ranks));
    }
    if (move.chunk >= schedule.chunks) {
      return at(kMoveChunk, i, of(move.chunk, " chunks", schedule.chunks));
    }
    if (move.chunks > schedule.chunks - move.chunk) {
      return at(kMoveChunks, i, of(move.chunk + move.chunks - 1, " chunks", schedule.chunks));
    }
  }
  return std::nullopt;
}

void fill_moves(Reader& reader, Schedule& schedule) {
  const auto& steps = reader.of(kMoveStep).numbers;
  const auto& chunks = reader.of(kMoveChunks).numbers;
  const auto& lines = reader.of(kMoveLine).numbers;
  schedule.moves.resize(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    schedule.moves[i] = {
        .step = steps[i],
        .from = reader.of(kMoveFrom).numbers[i],
        .to = reader.of(kMoveTo).numbers[i],
        .chunk = reader.of(kMoveChunk).numbers[i],
        .chunks = reader.of(kMoveChunks).seen ? chunks[i] : 1,
        .source = static_cast<Buffer>(reader.of(kMoveSource).numbers[i]),
        .target = static_cast<Buffer>(reader.of(kMoveTarget).numbers[i]),
        .combine = static_cast<Combine>(reader.of(kMoveCombine).numbers[i]),
        .line = reader.of(kMoveLine).seen ? static_cast<std::uint32_t>(lines[i]) : 0};
  }
}

void fill(Reader& reader, Schedule& schedule) {
  const auto name = [&reader](FieldIndex field) {
    return reader.of(field).seen ? std::move(reader.of(field).names.front()) : std::string();
  };
  schedule.algorithm = name(kAlgorithmField);
  schedule.file = name(kFileField);
  schedule.ranks = reader.of(kRanksField).numbers.front();
  schedule.root = reader.of(kRootField).seen ? reader.of(kRootField).numbers.front() : 0;
  schedule.chunks = reader.of(kChunksField).numbers.front();
  schedule.steps = reader.of(kStepsField).numbers.front();
  for (std::size_t i = 0; i < reader.of(kPhaseName).names.size(); ++i) {
    schedule.phases.push_back({.name = std::move(reader.of(kPhaseName).names[i]),
                               .first_step = reader.of(kPhaseFirstStep).numbers[i]});
  }
  fill_moves(reader, schedule);
}

}  // namespace

Parsed<Schedule> parse_schedule_json(std::string_view text) {
  Reader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) {
    return Parsed<Schedule>::failure(reader.message(), reader.position());
  }
  if (auto problem = check_presence(reader)) {
    return Parsed<Schedule>::failure(problem->message, problem->position);
  }
  Schedule schedule;
  const std::string& collective = reader.of(kCollectiveField).names.front();
  const auto parsed = parse_collective(collective);
  if (!parsed) {
    return Parsed<Schedule>::failure(in_quotes(collective) + " is no collective", "/collective");
  }
  schedule.collective = *parsed;
  if (is_rooted(*parsed) && !reader.of(kRootField).seen) {
    return Parsed<Schedule>::failure("missing; " + collective + " has a root", "/root");
  }
  fill(reader, schedule);
  if (!is_rooted(*parsed) && schedule.root != 0) {
    return Parsed<Schedule>::failure(
        std::to_string(schedule.root) + ", but " + collective + " has no root; leave it out",
        "/root");
  }
  if (auto problem = check_ranges(schedule)) {
    return Parsed<Schedule>::failure(problem->message, problem->position);
  }
  return Parsed<Schedule>::success(std::move(schedule));
}

}  // namespace unisono
