// A checksum against damage on the way, not against malice: the usual CRC-32C (Castagnoli).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unisono::kernels {

// The same on every processor. `before` is the sum of the bytes in front of these, when
// they come in parts.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace unisono::kernels
