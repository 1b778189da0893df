// Puts messages into lanes, in the same way for all senders. A piece of a message takes one of
// these ways, from the shortest piece to the longest:
//   copied into the lane   send(), for at most `inline_bytes`
//   shared                 the readers see this memory and read it directly
//   offered                the readers fetch it directly
//   copied into a slot     reserve(), fill(), commit(), one slot at a time; if no other way fits
// Shared and offered memory must not change until the lane has drained.
#pragma once

#include <algorithm>
#include <cstddef>

#include "transport/transport.h"

namespace unisono::transport {

// A copy of the transport's limits: a virtual call per piece would cost too much for a short
// message.
struct SendLimits {
  std::size_t inline_bytes = 0;
  std::size_t slot_bytes = 0;
  // Shorter pieces are copied: a copy costs less than a wait until the readers are done.
  std::size_t least_shared_bytes = 0;
};

inline SendLimits send_limits(const Limits& limits, std::size_t least_shared_bytes) noexcept {
  return {limits.inline_bytes, limits.slot_bytes, least_shared_bytes};
}

// The part of a message that can be sent now: [done, ready) of its `bytes`.
struct Piece {
  const std::byte* message = nullptr;
  std::size_t bytes = 0;
  std::size_t done = 0;
  std::size_t ready = 0;
  bool may_share = true;  // the memory is unchanged until the lane has drained
  bool may_offer = true;  // all readers copy the whole message, into one place
};

struct Sent {
  std::size_t bytes = 0;  // 0: no room in the lane now
  bool shared = false;    // the readers use the memory until drained()
};

// Sends as much of the piece as possible now, from its beginning on. `signature(bytes)` must return
// the signature of a message of that length. REQUIRES: the piece is not empty.
template <class Signature>
Sent send_some(Transport& transport, int lane, const SendLimits& limits, const Piece& piece,
               const Signature& signature) noexcept {
  const std::byte* data = piece.message + piece.done;
  std::size_t bytes = piece.ready - piece.done;
  const auto sent = [&bytes](bool done, bool shared) { return Sent{done ? bytes : 0, shared}; };
  if (bytes <= limits.inline_bytes) {
    return sent(transport.send(lane, data, bytes, signature(bytes)), false);
  }
  if (piece.may_share && bytes >= limits.least_shared_bytes) {
    if (const std::size_t most = transport.shareable_bytes(lane, data, bytes); most != 0) {
      bytes = most;
      return sent(transport.share(lane, data, bytes, signature(bytes)), true);
    }
  }
  if (piece.may_share && piece.may_offer && bytes >= limits.slot_bytes &&
      transport.can_offer(lane, piece.message, piece.bytes)) {
    return sent(transport.offer(lane, data, bytes, signature(bytes)), true);
  }
  bytes = std::min(bytes, limits.slot_bytes);
  std::byte* slot = transport.reserve(lane, bytes);
  if (slot == nullptr) {
    return {};
  }
  transport.fill(lane, slot, data, bytes);
  transport.commit(lane, bytes, signature(bytes));
  return {bytes, false};
}

}  // namespace unisono::transport
