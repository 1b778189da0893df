// Encodes and decodes f32 in the formats of base/move_code.h. The bits are the same with every
// instruction set, and in flush-to-zero mode.
#pragma once

#include <cstddef>

#include "base/move_code.h"

namespace unisono::kernels {

// Neither function throws, allocates or needs alignment. decode() accepts any bytes.
struct CodedBlockFunctions {
  // Writes coded_bytes(code, count) bytes.
  void (*encode)(void* coded, const void* floats, std::size_t count) = nullptr;
  void (*decode)(void* floats, const void* coded, std::size_t count) = nullptr;
};

// Returns null functions for MoveCode::none.
CodedBlockFunctions find_coded_blocks(MoveCode code);

}  // namespace unisono::kernels
