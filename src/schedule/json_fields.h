// The fields of `unisono.schedule/1`: their place, their valid values, and the values that were
// read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/counts.h"

namespace unisono::json_fields {

inline constexpr std::int64_t kMostRanks = 4096;
inline constexpr std::int64_t kMostChunks = std::int64_t{1} << 24;
inline constexpr std::int64_t kMostSteps = std::int64_t{1} << 30;
inline constexpr std::int64_t kMostLines = std::int64_t{1} << 30;

inline constexpr std::array<std::string_view, 3> kBuffers = {"input", "output", "scratch"};
inline constexpr std::array<std::string_view, 2> kCombines = {"replace", "reduce"};

enum class Type { number, word, name, rows };

// A value of the document: a number up to `most`, one of the `words`, any name, or rows of counts.
struct Field {
  std::string_view path;  // as a JSON pointer; the place of a column is that of its array
  Type type = Type::number;
  bool column = false;
  bool required = true;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::span<const std::string_view> words = {};
};

enum FieldIndex : std::size_t {
  kFormatField,
  kCollectiveField,
  kAlgorithmField,
  kRanksField,
  kRootField,
  kChunksField,
  kStepsField,
  kFileField,
  kPhaseName,
  kPhaseFirstStep,
  kMoveStep,
  kMoveFrom,
  kMoveTo,
  kMoveChunk,
  kMoveChunks,
  kMoveSource,
  kMoveTarget,
  kMoveCombine,
  kMoveLine,
  kElementBytes,
  kCountsSend,
  kCountsReceive,
  kFieldCount
};

inline constexpr std::array<Field, kFieldCount> kFields = {{
    {.path = "/format", .type = Type::name},
    {.path = "/collective", .type = Type::name},
    {.path = "/algorithm", .type = Type::name, .required = false},
    {.path = "/ranks", .least = 1, .most = kMostRanks},
    {.path = "/root", .required = false, .most = kMostRanks - 1},
    {.path = "/chunks", .least = 1, .most = kMostChunks},
    {.path = "/steps", .most = kMostSteps},
    {.path = "/file", .type = Type::name, .required = false},
    {.path = "/phases/name", .type = Type::name, .column = true, .required = false},
    {.path = "/phases/first_step", .column = true, .required = false, .most = kMostSteps},
    {.path = "/moves/step", .column = true, .most = kMostSteps},
    {.path = "/moves/from", .column = true, .most = kMostRanks - 1},
    {.path = "/moves/to", .column = true, .most = kMostRanks - 1},
    {.path = "/moves/chunk", .column = true, .most = kMostChunks - 1},
    {.path = "/moves/chunks", .column = true, .required = false, .least = 1, .most = kMostChunks},
    {.path = "/moves/source", .type = Type::word, .column = true, .words = kBuffers},
    {.path = "/moves/target", .type = Type::word, .column = true, .words = kBuffers},
    {.path = "/moves/combine", .type = Type::word, .column = true, .words = kCombines},
    {.path = "/moves/line", .column = true, .required = false, .most = kMostLines},
    {.path = "/counts/element_bytes", .required = false, .least = 1, .most = kMostElementBytes},
    {.path = "/counts/send", .type = Type::rows, .column = true, .required = false},
    {.path = "/counts/receive", .type = Type::rows, .column = true, .required = false},
}};

// The values of one field; a scalar has one.
struct Values {
  bool seen = false;
  std::vector<std::int32_t> numbers;  // also the index of a word
  std::vector<std::string> names;
  CountRows rows;

  std::size_t size() const { return std::max(numbers.size(), names.size()); }
};

}  // namespace unisono::json_fields
