// Reads values in PyTorch's JSON, in which anything may be missing.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "imports/imports.h"

namespace unisono::cli {

inline constexpr double kMostCallBytes = 1e15;

// Throws UsageError: the file has none of the known formats.
[[noreturn]] void refuse_import(const std::string& path, const std::string& what);

// null where there is none.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
double number(const nlohmann::json& value, double fallback);
std::string text(const nlohmann::json& value);
// [0, 1], or "[0, 1]"; empty if the list is cut off.
std::vector<int> ranks_in(const nlohmann::json& value);
// The elements of all tensors in nested lists of their dimensions: [[4, 2], [3]] has 11.
double elements(const nlohmann::json& dims);
// Returns the type of the first tensor of a list; bytes if there is none.
TorchType first_type(const nlohmann::json& types);
// Notes that the size of an unknown type is assumed.
void note_type(const TorchType& type, Account& account);
std::int64_t sequence_of(const nlohmann::json& value);
// The rank that a file says it is of, or else its name. Throws UsageError: neither does.
int rank_said(const nlohmann::json& value, const std::string& path);

// Empty, and counted as left out: a send, a receive, or no collective of unisono.
std::string known_collective(const std::string& name, ImportedRank& rank);
// Sorts the calls by start, and leaves impossible ones out.
void finish_calls(ImportedRank& rank);

}  // namespace unisono::cli
