// The lengths of encoded messages (base/move_code.h). A pass counts its progress and its bytes as
// f32 data; only the data in a lane is shorter. A piece of a message consists of whole blocks,
// except at the end of the message, so both ends cut at the same elements.
#pragma once

#include <cstddef>

#include "engine/bound_program.h"

namespace unisono::engine {

inline constexpr std::size_t kBlockBytes = kCodeBlock * sizeof(float);

// Rounds down to whole blocks, except at the end of the pass.
inline std::size_t whole_blocks(const BoundPass& pass, std::size_t done, std::size_t bytes) {
  return done + bytes == pass.bytes ? bytes : bytes / kBlockBytes * kBlockBytes;
}

// Converts a pass's own bytes to bytes in a lane, and back. Returns 0 if no pass has such a length.
inline std::size_t message_bytes(const BoundPass& pass, std::size_t own_bytes) {
  const bool encoded = pass.code != MoveCode::none && !pass.rounds;
  return encoded ? coded_bytes(pass.code, own_bytes / sizeof(float)) : own_bytes;
}
inline std::size_t plain_bytes(const BoundPass& pass, std::size_t message_bytes) {
  return pass.code == MoveCode::none ? message_bytes
                                     : coded_elements(pass.code, message_bytes) * sizeof(float);
}

// Returns true if a message of that length can be the next piece of the pass.
inline bool fits(const BoundPass& pass, std::size_t done, std::size_t message_bytes) {
  const std::size_t bytes = plain_bytes(pass, message_bytes);
  return bytes != 0 && bytes <= pass.bytes - done &&
         (pass.code == MoveCode::none || whole_blocks(pass, done, bytes) == bytes);
}

}  // namespace unisono::engine
