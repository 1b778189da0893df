#include "schedule/json.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "base/words.h"
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

// Reads the document as a stream of values: memory is used only for values that have a place in the
// schedule, and none for nesting.
class ScheduleReader : public JsonReader {
 public:
  bool has_phases() const { return phases_seen_; }
  bool has_counts() const { return counts_seen_; }
  Values& of(FieldIndex field) { return values_[field]; }

 private:
  void null() override { wrong_type("null"); }
  void truth(bool) override { wrong_type("a truth value"); }
  void number(double) override { wrong_type("no whole number in range"); }

  void whole(std::int64_t value) override {
    const Field* field = expected();
    if (field != nullptr && field->type == Type::rows && in_row_) {
      if (value < 0) {
        fail(std::to_string(value) + "; a count must be 0 or more");
      }
      values_[field_].rows.back().push_back(value);
      return;
    }
    if (field == nullptr || field->type != Type::number) {
      wrong_type("a number");
    }
    if (value < field->least || value > field->most) {
      fail(std::to_string(value) + " is not in " + std::to_string(field->least) + ".." +
           std::to_string(field->most));
    }
    add(static_cast<std::int32_t>(value));
  }

  void text(std::string value) override {
    const Field* field = expected();
    if (field == nullptr || field->type == Type::number || field->type == Type::rows) {
      wrong_type("a string");
    }
    if (field->type == Type::word) {
      const auto found = std::find(field->words.begin(), field->words.end(), value);
      if (found == field->words.end()) {
        fail(in_quotes(value) + " is not one of " + words_of(*field));
      }
      return add(static_cast<std::int32_t>(found - field->words.begin()));
    }
    if (value.size() > kMostName || has_control_characters(value)) {
      fail("a name of more than 1024 bytes or with control characters");
    }
    if (field_ == kFormatField && value != kScheduleFormat) {
      fail("unknown version " + in_quotes(value) + ", this reads " + std::string(kScheduleFormat));
    }
    check_room();
    values_[field_].names.push_back(std::move(value));
  }

  void begin_object() override {
    if (depth() > 0 && (depth() > 1 || field_ != kFieldCount)) {
      wrong_type("an object");
    }
    group_ = path();
  }

  void key(const std::string& name) override {
    const std::string place = group_ + "/" + name;
    const auto found = std::find_if(kFields.begin(), kFields.end(),
                                    [&place](const Field& field) { return field.path == place; });
    field_ = static_cast<std::size_t>(found - kFields.begin());
    const bool is_group = place == "/phases" || place == "/moves" || place == "/counts";
    if (name.find('/') != std::string::npos || (found == kFields.end() && !is_group)) {
      fail("unknown key " + in_quotes(name));
    }
    if (!is_group) {
      values_[field_].seen = true;
    }
    phases_seen_ = phases_seen_ || place == "/phases";
    counts_seen_ = counts_seen_ || place == "/counts";
  }

  void end_object() override { group_.clear(); }

  void begin_array() override {
    const Field* field = expected();
    if (field != nullptr && field->type == Type::rows && !in_row_) {
      values_[field_].rows.emplace_back();
      in_row_ = true;
      return;
    }
    if (depth() == 0 || field_ >= kFieldCount || !kFields[field_].column || in_column_) {
      wrong_type("an array");
    }
    in_column_ = true;
  }

  void end_array() override { (in_row_ ? in_row_ : in_column_) = false; }

  // Returns the field to which a value at this position belongs; nullptr if no value is allowed
  // here.
  const Field* expected() const {
    if (depth() == 0 || field_ >= kFieldCount || kFields[field_].column != in_column_) {
      return nullptr;
    }
    return &kFields[field_];
  }

  void add(std::int32_t value) {
    check_room();
    values_[field_].numbers.push_back(value);
  }

  void check_room() const {
    if (values_[field_].size() >= kMostMoves) {
      fail("more than 50000000 moves");
    }
  }

  [[noreturn]] void wrong_type(std::string_view found) const {
    const Field* field = expected();
    if (depth() == 0) {
      fail("the document is " + std::string(found) + ", not an object");
    }
    if (field == nullptr) {
      const bool column = field_ < kFieldCount && !in_column_;
      fail(std::string(found) + " where " + (column ? "an array" : "an object") + " belongs");
    }
    const std::string wanted = field->type == Type::rows
                                   ? std::string(in_row_ ? "a whole number" : "a row of counts")
                               : field->type == Type::number ? "a number"
                               : field->type == Type::word   ? "one of " + words_of(*field)
                                                             : "a string";
    fail(std::string(found) + " where " + wanted + " belongs");
  }

  static std::string words_of(const Field& field) {
    std::string words;
    for (const std::string_view word : field.words) {
      words += (words.empty() ? "" : ", ") + std::string(word);
    }
    return words;
  }

  std::array<Values, kFieldCount> values_;
  std::string group_;  // "", "/phases", "/moves" or "/counts"
  std::size_t field_ = kFieldCount;
  bool in_column_ = false;
  bool in_row_ = false;
  bool phases_seen_ = false;
  bool counts_seen_ = false;
};

std::optional<JsonProblem> check_presence(ScheduleReader& reader) {
  for (std::size_t i = 0; i < kFieldCount; ++i) {
    const Field& field = kFields[i];
    const bool of_phases = reader.has_phases() && (i == kPhaseName || i == kPhaseFirstStep);
    const bool of_counts = reader.has_counts() && i == kCountsSend;
    if ((field.required || of_phases || of_counts) && !reader.of(static_cast<FieldIndex>(i)).seen) {
      return JsonProblem{"missing", std::string(field.path)};
    }
  }
  const auto differs = [&reader](FieldIndex column, FieldIndex like) -> std::optional<JsonProblem> {
    const std::size_t found = reader.of(column).size();
    const std::size_t wanted = reader.of(like).size();
    if (found == wanted || !reader.of(column).seen) {
      return std::nullopt;
    }
    return JsonProblem{std::to_string(found) + " values, but " + std::string(kFields[like].path) +
                           " has " + std::to_string(wanted),
                       std::string(kFields[column].path)};
  };
  if (auto problem = differs(kPhaseFirstStep, kPhaseName)) {
    return problem;
  }
  for (std::size_t i = kMoveFrom; i <= kMoveLine; ++i) {
    if (auto problem = differs(static_cast<FieldIndex>(i), kMoveStep)) {
      return problem;
    }
  }
  return std::nullopt;
}

JsonProblem at(FieldIndex field, std::size_t index, std::string message) {
  return {std::move(message), std::string(kFields[field].path) + "/" + std::to_string(index)};
}

std::optional<JsonProblem> check_ranges(const Schedule& schedule) {
  const auto of = [](int value, const char* what, int count) {
    return std::to_string(value) + ", but there are " + std::to_string(count) + what;
  };
  if (schedule.root >= schedule.ranks) {
    return JsonProblem{of(schedule.root, " ranks", schedule.ranks), "/root"};
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

std::optional<JsonProblem> check_counts_of(const Schedule& schedule) {
  if (schedule.collective != Collective::all_to_all) {
    return JsonProblem{"only all_to_all has counts; leave them out", "/counts"};
  }
  const CountProblem problem = check_counts(schedule.counts);
  if (!problem.message.empty()) {
    return JsonProblem{problem.message, "/counts" + problem.position};
  }
  if (schedule.counts.ranks() != schedule.ranks) {
    return JsonProblem{"counts for " + std::to_string(schedule.counts.ranks()) +
                           ", but there are " + std::to_string(schedule.ranks) + " ranks",
                       "/counts/send"};
  }
  const std::int64_t blocks = std::int64_t{schedule.ranks} * schedule.ranks;
  if (schedule.chunks % blocks != 0) {
    return JsonProblem{std::to_string(schedule.chunks) + ", but with counts it is a multiple of " +
                           std::to_string(blocks) + ", the blocks",
                       "/chunks"};
  }
  return std::nullopt;
}

void fill_moves(ScheduleReader& reader, Schedule& schedule) {
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

void fill(ScheduleReader& reader, Schedule& schedule) {
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
  if (reader.has_counts()) {
    schedule.counts = {.element_bytes = reader.of(kElementBytes).seen
                                            ? reader.of(kElementBytes).numbers.front()
                                            : 1,
                       .send = std::move(reader.of(kCountsSend).rows),
                       .receive = std::move(reader.of(kCountsReceive).rows)};
  }
  fill_moves(reader, schedule);
}

}  // namespace

Parsed<Schedule> parse_schedule_json(std::string_view text) {
  ScheduleReader reader;
  try {
    reader.read(text);
  } catch (const JsonProblem& problem) {
    return Parsed<Schedule>::failure(problem.message, problem.position);
  }
  if (auto problem = check_presence(reader)) {
    return Parsed<Schedule>::failure(problem->message, problem->position);
  }
  Schedule schedule;
  const std::string& collective = reader.of(kCollectiveField).names.front();
  const auto parsed = parse_collective(collective);
  if (!parsed) {
    return Parsed<Schedule>::failure(in_quotes(collective) + " is not a collective", "/collective");
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
  if (reader.has_counts()) {
    if (auto problem = check_counts_of(schedule)) {
      return Parsed<Schedule>::failure(problem->message, problem->position);
    }
  }
  return Parsed<Schedule>::success(std::move(schedule));
}

}  // namespace unisono
