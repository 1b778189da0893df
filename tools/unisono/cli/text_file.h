// Reads what a user has named.
#pragma once

#include <cstddef>
#include <string>

namespace unisono::cli {

// The whole file, unpacked if gzip has compressed it, as tools for traces like to do. Throws
// UsageError: it is a folder, cannot be read, or is larger than `most` bytes; corrupt: what is
// compressed is damaged.
std::string read_text_file(const std::string& path, std::size_t most = 1'000'000'000);

}  // namespace unisono::cli
