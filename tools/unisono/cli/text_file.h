// Reads what a user has named.
#pragma once

#include <string>

namespace unisono::cli {

// The whole file, unpacked if gzip has compressed it, as tools for traces like to do. Throws
// UsageError: it is a folder, cannot be read, or is larger than 1 GB; corrupt: what is compressed
// is damaged.
std::string read_text_file(const std::string& path);

}  // namespace unisono::cli
