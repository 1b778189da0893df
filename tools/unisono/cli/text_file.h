// Reads files named by the user.
#pragma once

#include <cstddef>
#include <string>

namespace unisono::cli {

// The largest unpacked size of files: for documents written by people, and for recordings.
inline constexpr std::size_t kMostOfDocument = std::size_t{256} << 20U;
inline constexpr std::size_t kMostOfRecording = 1'000'000'000;

// Returns the whole file, unpacked if it is compressed with gzip, as traces often are. Throws
// UsageError if it is a folder, cannot be read, is larger than `most` bytes, is UTF-16, or unpacks
// to so many times its size that it looks like an attempt to fill the memory. Throws corrupt if the
// compressed data is damaged.
std::string read_text_file(const std::string& path, std::size_t most = kMostOfDocument);

}  // namespace unisono::cli
