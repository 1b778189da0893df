// The formats of stored numbers: how many bytes hold how many elements, and how they are unpacked.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llm {

struct BlockFormat {
  std::uint32_t type;  // as GGUF numbers it
  const char* name;
  std::size_t elements;
  std::size_t bytes;
  void (*unpack)(const std::uint8_t* block, float* out);
};

// nullptr: it is not read here.
const BlockFormat* block_format(std::uint32_t type);

}  // namespace llm
