// The format of safetensors files: 8 bytes with the length of a JSON header, the header, the data.
//
//   {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// Offsets count from the end of the header. Tensors are row-major, little-endian.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/parsed.h"
#include "unisono/parallel/checkpoint.hpp"

namespace unisono::parallel {

struct FileTensor {
  Dtype dtype = Dtype::f32;
  std::vector<std::size_t> shape = {};
  std::uint64_t begin = 0;  // in the file
  std::uint64_t bytes = 0;
};
using FileContents = std::map<std::string, FileTensor>;

// Places tensors one after the other, and returns the beginning of the file.
std::string write_header(FileContents& contents, const std::vector<std::string>& order);

// `header`: the bytes after the first 8. `file_bytes`: the length of the file.
Parsed<FileContents> read_header(std::string_view header, std::uint64_t file_bytes);

inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the reference reader

// The index of a checkpoint: {"metadata": {...}, "weight_map": {"name": "file"}}.
std::string write_index(const std::map<std::string, std::string>& files, std::uint64_t bytes);
Parsed<std::map<std::string, std::string>> read_index(std::string_view text);

}  // namespace unisono::parallel
