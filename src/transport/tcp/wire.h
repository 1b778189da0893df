// The frames on an authenticated connection. Each frame is a header of 64 bytes, little endian, and
// its payload. The header has 64 bytes because a payload that begins on a cache line is copied
// faster.
//
//    0  version    1 byte
//    1  kind       1 byte
//    2  zero       2 bytes
//    4  epoch      of the world
//    8  group      64 bits
//   16  signature  64 bits
//   24  bytes      of the payload
//   28  number     of the message in its lane, counted from 0
//   32  released   messages that the sender has released in the opposite lane
//   36  sum        of the payload (kernels/crc32c.h) if the job has checksums, else 0
//   40  check      of all above
//   44  zero       20 bytes
//
// Every field is checked before it is used: see decode(), and Link for the checks that depend on
// the state of the lane.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/network.h"

namespace unisono::tcp {

inline constexpr std::uint8_t kWireVersion = 3;
inline constexpr std::size_t kHeaderBytes = 64;

enum class FrameKind : std::uint8_t {
  message = 1,
  credit,  // only updates `released`
  leave,   // the last frame of a peer that leaves properly; the payload is its farewell
  abort,   // the world ends; the payload is the reason
};

struct FrameHeader {
  FrameKind kind = FrameKind::message;
  std::uint32_t epoch = 0;
  std::uint64_t group = 0;
  std::uint64_t signature = 0;
  std::uint32_t bytes = 0;
  std::uint32_t number = 0;
  std::uint32_t released = 0;
  std::uint32_t sum = 0;

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

inline constexpr std::size_t kMostReason = 1024;  // the longest reason of an abort
inline constexpr std::size_t kMostWords = std::max(kMostReason, transport::kMostFarewell);

enum class BadFrame : std::uint8_t { none, check, version, kind, length };

void encode(const FrameHeader& header, std::byte* to) noexcept;
BadFrame decode(std::span<const std::byte, kHeaderBytes> from, FrameHeader& header) noexcept;

}  // namespace unisono::tcp
