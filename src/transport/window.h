// The flow-control window of a lane, for any network between hosts.
//
// The reader of a lane has room for kMessages messages, kShortWindow bytes of short messages, and a
// few slots for long messages. The writer counts its messages and never exceeds this room.
// Therefore an unread lane uses only that much memory, and never blocks the connection. The reader
// reports releases in every message that it sends. If it sends no message, it reports them in a
// separate message once they reach a quarter of the short bytes or half of the slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace unisono::transport {

inline constexpr std::uint32_t kMessages = 256;  // of a lane at once; divides 2^32
inline constexpr std::size_t kShortBytes = std::size_t{16} << 10;
inline constexpr std::size_t kShortWindow = std::size_t{128} << 10;
inline constexpr std::size_t kMostBytes = std::size_t{256} << 10;  // the longest message

constexpr bool is_short(std::size_t bytes) noexcept {
  return bytes <= kShortBytes;
}
constexpr std::size_t room_of(std::size_t bytes) noexcept {
  return std::max<std::size_t>(64, (bytes + 63) / 64 * 64);
}

// The used part of a lane's window.
struct Window {
  std::uint32_t messages = 0;
  std::size_t short_bytes = 0;
  std::uint32_t slots = 0;

  bool holds(std::size_t bytes, std::uint32_t most_slots) const noexcept {
    return messages < kMessages &&
           (is_short(bytes) ? short_bytes + room_of(bytes) <= kShortWindow : slots < most_slots);
  }
  void add(std::size_t bytes) noexcept {
    ++messages;
    short_bytes += is_short(bytes) ? room_of(bytes) : 0;
    slots += is_short(bytes) ? 0U : 1U;
  }
  void remove(std::size_t bytes) noexcept {
    --messages;
    short_bytes -= is_short(bytes) ? room_of(bytes) : 0;
    slots -= is_short(bytes) ? 0U : 1U;
  }
  // Returns true if enough was released to notify the writer in a frame that reports nothing else.
  bool is_worth_a_frame(std::uint32_t most_slots) const noexcept {
    return messages >= kMessages / 4 || short_bytes >= kShortWindow / 4 ||
           slots >= std::max(most_slots / 2, 1U);
  }
};

}  // namespace unisono::transport
