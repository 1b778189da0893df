#include "transport/tcp/wire.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "transport/window.h"

namespace unisono::tcp {
namespace {

constexpr std::size_t kCheckAt = 40;
constexpr std::size_t kZeroAt = 44;

template <typename Integer>
Integer little(Integer value) noexcept {
  if constexpr (std::endian::native == std::endian::big) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof(Integer)>>(value);
    for (std::size_t i = 0; i < sizeof(Integer) / 2; ++i) {
      std::swap(bytes[i], bytes[sizeof(Integer) - 1 - i]);
    }
    return std::bit_cast<Integer>(bytes);
  }
  return value;
}

template <typename Integer>
void put(std::byte* to, Integer value) noexcept {
  value = little(value);
  std::memcpy(to, &value, sizeof(value));
}

template <typename Integer>
Integer get(const std::byte* from) noexcept {
  Integer value;
  std::memcpy(&value, from, sizeof(value));
  return little(value);
}

// Protects against chance, not malice. Each word is multiplied by an odd number and shifted, so
// that every bit affects the upper half.
std::uint32_t check_of(const std::byte* header) noexcept {
  std::uint64_t sum = 0x9e3779b97f4a7c15U;
  for (std::size_t at = 0; at < kCheckAt; at += 8) {
    sum = (sum ^ get<std::uint64_t>(header + at)) * 0xbf58476d1ce4e5b9U;
    sum ^= sum >> 29;
  }
  return static_cast<std::uint32_t>(sum >> 32);
}

std::size_t most_bytes(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::message:
      return transport::kMostBytes;
    case FrameKind::abort:
      return kMostReason;
    case FrameKind::leave:
      return transport::kMostFarewell;
    default:
      return 0;
  }
}

}  // namespace

void encode(const FrameHeader& header, std::byte* to) noexcept {
  put(to, kWireVersion);
  put(to + 1, static_cast<std::uint8_t>(header.kind));
  put(to + 2, std::uint16_t{0});
  put(to + 4, header.epoch);
  put(to + 8, header.group);
  put(to + 16, header.signature);
  put(to + 24, header.bytes);
  put(to + 28, header.number);
  put(to + 32, header.released);
  put(to + 36, header.sum);
  put(to + kCheckAt, check_of(to));
  std::memset(to + kZeroAt, 0, kHeaderBytes - kZeroAt);
}

BadFrame decode(std::span<const std::byte, kHeaderBytes> from, FrameHeader& header) noexcept {
  const std::byte* bytes = from.data();
  const auto is_zero = [](std::byte byte) { return byte == std::byte{}; };
  if (get<std::uint32_t>(bytes + kCheckAt) != check_of(bytes) ||
      !std::all_of(from.begin() + kZeroAt, from.end(), is_zero)) {
    return BadFrame::check;
  }
  if (get<std::uint8_t>(bytes) != kWireVersion || get<std::uint16_t>(bytes + 2) != 0) {
    return BadFrame::version;
  }
  const auto kind = get<std::uint8_t>(bytes + 1);
  if (kind < static_cast<std::uint8_t>(FrameKind::message) ||
      kind > static_cast<std::uint8_t>(FrameKind::abort)) {
    return BadFrame::kind;
  }
  header.kind = static_cast<FrameKind>(kind);
  header.epoch = get<std::uint32_t>(bytes + 4);
  header.group = get<std::uint64_t>(bytes + 8);
  header.signature = get<std::uint64_t>(bytes + 16);
  header.bytes = get<std::uint32_t>(bytes + 24);
  header.number = get<std::uint32_t>(bytes + 28);
  header.released = get<std::uint32_t>(bytes + 32);
  header.sum = get<std::uint32_t>(bytes + 36);
  return header.bytes <= most_bytes(header.kind) ? BadFrame::none : BadFrame::length;
}

}  // namespace unisono::tcp
