// Formats of stored numbers: bytes and elements per block, and functions that unpack blocks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llm {

struct BlockFormat {
  std::uint32_t type;  // GGUF's number
  const char* name;
  std::size_t elements;
  std::size_t bytes;
  void (*unpack)(const std::uint8_t* block, float* out);
};

// Returns nullptr for a format that this program cannot read.
const BlockFormat* block_format(std::uint32_t type);

}  // namespace llm
