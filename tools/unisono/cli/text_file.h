// Reads files named by the user.
#pragma once

#include <cstddef>
#include <string>

namespace unisono::cli {

// The largest unpacked size of files: of documents written by people, and of recordings.
inline constexpr std::size_t kMostOfDocument = std::size_t{256} << 20U;
inline constexpr std::size_t kMostOfRecording = 1'000'000'000;

// The whole file, unpacked if gzip has compressed it, as tools for traces like to do. Throws
// UsageError: it is a folder, cannot be read, is larger than `most` bytes, is UTF-16, or unpacks to
// so many times its size that it is made to fill the memory; corrupt: what is compressed is
// damaged.
std::string read_text_file(const std::string& path, std::size_t most = kMostOfDocument);

}  // namespace unisono::cli
