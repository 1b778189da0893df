// Passes with encoded messages. Outgoing data is encoded into the lane; incoming data is decoded
// before it is summed. All lengths are lengths of the f32 data (coded_lengths.h).
#pragma once

#include <cstddef>

#include "engine/execution.h"
#include "transport/send.h"

namespace unisono::engine {

// Encodes the first bytes of [done, ready) into a slot of the lane. REQUIRES: a slot can hold a
// block of f32.
transport::Sent send_coded(Execution& run, const BoundPass& pass, std::size_t slot_bytes,
                           std::size_t done, std::size_t ready) noexcept;

// Replaces the sources of a pass with a code by f32 data: decodes incoming data, and rounds copied
// data. Sets `bytes` to the available length. Returns false if no whole block is available yet.
bool decode_sources(Execution& run, const BoundPass& pass, std::size_t done,
                    std::size_t& bytes) noexcept;
// Returns the number of bytes that decode_sources() needs in `bounce`.
std::size_t coded_bounce_bytes(std::size_t sources);

}  // namespace unisono::engine
