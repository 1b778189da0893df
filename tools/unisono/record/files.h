// Files that hold recordings.
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

// So that it is known before a long run that the file can be written. Throws UsageError
// that names `option`.
void check_writable(const std::string& path, std::string_view option);
// Throws UsageError.
void write_text(const std::string& path, const std::string& text);
std::string dump(const nlohmann::ordered_json& document);

}  // namespace unisono::cli
