// Reads files with recordings, and describes files that are not recordings.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace unisono::cli {

// Returns the whole contents of a file.
std::vector<std::byte> read_bytes(int fd);
// Returns the recordings in a folder, or the recording in a file. Throws UsageError.
std::vector<std::vector<std::byte>> read_recordings(const std::string& path);
// Throws corrupt: the file should be JSON, and is not.
[[noreturn]] void refuse_cut(const std::string& path);
// Returns a unisono.trace/1. Throws UsageError and corrupt.
nlohmann::ordered_json read_trace(const std::string& path);

std::string dump(const nlohmann::ordered_json& document);

// Describes bytes that are not JSON: "empty", "compressed by gzip", "an HTML page", ...; "": they
// begin like a JSON document, or almost like one.
std::string what_is(std::string_view text);
// Throws a UsageError that describes the file; `expected`: "a recording (unisono.trace/1)". Returns
// if the file may be damaged JSON.
void refuse_other_files(const std::string& path, std::string_view text, std::string_view expected);
// Throws UsageError for a unisono.trace/ of a version that this program does not read.
void refuse_other_version(const std::string& path, const nlohmann::ordered_json& document);
// Throws UsageError for a trace of chrome://tracing and Perfetto, from any program.
void refuse_traces(const std::string& path, const nlohmann::ordered_json& document);

// Returns true if document[key] is a text with this beginning.
bool begins(const nlohmann::ordered_json& document, const char* key, std::string_view with);
// Returns the format of a file that unisono wrote, such as "unisono.plan/1"; otherwise "".
std::string format_of(const nlohmann::ordered_json& document);
// Returns true if unisono sim --trace wrote it.
bool is_simulated(const nlohmann::ordered_json& document);

}  // namespace unisono::cli
