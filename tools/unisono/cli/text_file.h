// Reads what a user has named.
#pragma once

#include <string>

namespace unisono::cli {

// The whole file. Throws UsageError: it is a folder, cannot be read, or is larger than 1 GB.
std::string read_text_file(const std::string& path);

}  // namespace unisono::cli
