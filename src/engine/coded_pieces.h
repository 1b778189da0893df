// How passes with encoded messages go on: what they send is encoded into the lane, what comes is
// decoded before it is summed. Lengths are those of f32 (coded_lengths.h).
#pragma once

#include <cstddef>

#include "engine/execution.h"
#include "transport/send.h"

namespace unisono::engine {

// Encodes the beginning of [done, ready) into a slot of the lane. REQUIRES: a slot holds a block of
// f32.
transport::Sent send_coded(Execution& run, const BoundPass& pass, std::size_t slot_bytes,
                           std::size_t done, std::size_t ready) noexcept;

// Puts f32 in the place of the sources of a pass with a code: decodes what came, or rounds what is
// copied. `bytes` becomes how much that is. False: there is no whole block yet.
bool decode_sources(Execution& run, const BoundPass& pass, std::size_t done,
                    std::size_t& bytes) noexcept;
// The room that it needs in `bounce`.
std::size_t coded_bounce_bytes(std::size_t sources);

}  // namespace unisono::engine
