// Files that hold recordings, and what a file is that was given as one and is not, in words.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::cli {

// All of a file, from its beginning.
std::vector<std::byte> read_bytes(int fd);
// The recordings of a folder, or one of them. Throws UsageError.
std::vector<std::vector<std::byte>> read_recordings(const std::string& path);
// Throws corrupt: it is no JSON, though it should be.
[[noreturn]] void refuse_cut(const std::string& path);
// A unisono.trace/1. Throws UsageError, and corrupt.
nlohmann::ordered_json read_trace(const std::string& path);

std::string dump(const nlohmann::ordered_json& document);

// Describes bytes that are not JSON: "empty", "compressed by gzip", "an HTML page", ...; "": they
// begin like a JSON document, or nearly.
std::string what_is(std::string_view text);
// Throws UsageError that says what it is; `expected`: "a recording (unisono.trace/1)". Returns
// where it may be meant to be JSON.
void refuse_other_files(const std::string& path, std::string_view text, std::string_view expected);
// Throws UsageError for a unisono.trace/ of another version than the one that is read.
void refuse_other_version(const std::string& path, const nlohmann::ordered_json& document);
// Throws UsageError for a trace of chrome://tracing and Perfetto, from any program.
void refuse_traces(const std::string& path, const nlohmann::ordered_json& document);

// Returns true if document[key] is a text with this beginning.
bool begins(const nlohmann::ordered_json& document, const char* key, std::string_view with);
// "unisono.plan/1", of what unisono wrote; else "".
std::string format_of(const nlohmann::ordered_json& document);
// Returns true if unisono sim --trace wrote it.
bool is_simulated(const nlohmann::ordered_json& document);

}  // namespace unisono::cli
