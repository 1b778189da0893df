// Passes with encoded messages: outgoing data is encoded into the lane, incoming data is decoded
// before it is summed. Lengths are those of f32 (coded_lengths.h).
#pragma once

#include <cstddef>

#include "engine/execution.h"
#include "transport/send.h"

namespace unisono::engine {

// Encodes the beginning of [done, ready) into a slot of the lane. REQUIRES: a slot holds a block of
// f32.
transport::Sent send_coded(Execution& run, const BoundPass& pass, std::size_t slot_bytes,
                           std::size_t done, std::size_t ready) noexcept;

// Replaces the sources of a pass with a code by f32: decodes incoming data, or rounds copied data.
// Sets `bytes` to the available length. Returns false if there is no whole block yet.
bool decode_sources(Execution& run, const BoundPass& pass, std::size_t done,
                    std::size_t& bytes) noexcept;
// Returns the room that it needs in `bounce`.
std::size_t coded_bounce_bytes(std::size_t sources);

}  // namespace unisono::engine
