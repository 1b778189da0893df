// CRC-32C (Castagnoli), a checksum that detects accidental damage but not manipulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace unisono::kernels {

// Returns the checksum, which is the same on every processor. To process data in parts, pass the
// checksum of the preceding bytes as `before`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

}  // namespace unisono::kernels
