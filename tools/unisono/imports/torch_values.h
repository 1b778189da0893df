// Reads values in PyTorch's JSON, in which anything may be missing.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "imports/imports.h"

namespace unisono::cli {

inline constexpr double kMostCallBytes = 1e15;

// Throws UsageError: the file has none of the known formats.
[[noreturn]] void refuse_import(const std::string& path, const std::string& what);

// Returns null if there is no such member.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
double number(const nlohmann::json& value, double fallback);
std::string text(const nlohmann::json& value);
// Reads [0, 1] or "[0, 1]"; empty if there is no list, nothing if it is cut off as in "[0, 1,
// ...]".
std::optional<std::vector<int>> ranks_in(const nlohmann::json& value);
// Returns the total number of elements of tensors, from nested lists of their dimensions: [[4, 2],
// [3]] has 11.
double elements(const nlohmann::json& dims);
// Returns the type of the first tensor of a list; bytes if there is none.
TorchType first_type(const nlohmann::json& types);
// Notes that the size of an unknown type is assumed.
void note_type(const TorchType& type, Account& account);
std::int64_t sequence_of(const nlohmann::json& value);
// Returns the rank in the contents of a file, or else in its name. Throws UsageError if neither has
// one.
int rank_said(const nlohmann::json& value, const std::string& path);

// Returns unisono's name of a collective. Sends, receives and other operations are counted as left
// out; the name is then empty.
std::string known_collective(const std::string& name, ImportedRank& rank);
// Sorts the calls by start, and leaves impossible ones out.
void finish_calls(ImportedRank& rank);

}  // namespace unisono::cli
