// How long encoded messages are (base/move_code.h). A pass counts its own f32: what is done of it,
// and its bytes, are of them, and only what is in a lane is shorter. A piece of a message is whole
// blocks, but at the end of it, so both ends cut it at the same elements.
#pragma once

#include <cstddef>

#include "engine/bound_program.h"

namespace unisono::engine {

inline constexpr std::size_t kBlockBytes = kCodeBlock * sizeof(float);

// Cut to whole blocks, but at the end of the pass.
inline std::size_t whole_blocks(const BoundPass& pass, std::size_t done, std::size_t bytes) {
  return done + bytes == pass.bytes ? bytes : bytes / kBlockBytes * kBlockBytes;
}

// What so many of a pass's own bytes are in a lane, and the other way round (0: of no number).
inline std::size_t message_bytes(const BoundPass& pass, std::size_t own_bytes) {
  const bool encoded = pass.code != MoveCode::none && !pass.rounds;
  return encoded ? coded_bytes(pass.code, own_bytes / sizeof(float)) : own_bytes;
}
inline std::size_t plain_bytes(const BoundPass& pass, std::size_t message_bytes) {
  return pass.code == MoveCode::none ? message_bytes
                                     : coded_elements(pass.code, message_bytes) * sizeof(float);
}

// Whether a message of that length can be the next piece of the pass.
inline bool fits(const BoundPass& pass, std::size_t done, std::size_t message_bytes) {
  const std::size_t bytes = plain_bytes(pass, message_bytes);
  return bytes != 0 && bytes <= pass.bytes - done &&
         (pass.code == MoveCode::none || whole_blocks(pass, done, bytes) == bytes);
}

}  // namespace unisono::engine
