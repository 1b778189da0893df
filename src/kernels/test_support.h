// Helpers for kernel tests: selects a SIMD target, and provides guarded buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/simd_targets.h"

// After simd_targets.h, which it depends on.
#include "hwy/targets.h"

namespace unisono::kernels {

inline constexpr std::size_t kGuard = 96;
inline constexpr unsigned char kGuardByte = 0xa5;

// Selects the SIMD target of all kernels found from now on; 0: the best target.
inline void use_target(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

inline std::vector<std::int64_t> all_targets() {
  use_target(0);
  return hwy::SupportedAndGeneratedTargets();
}

// A buffer at a chosen distance from a line boundary, with guard bytes on both sides.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t misalignment)
      : storage_(bytes + misalignment + 2 * kGuard + 64, std::byte{kGuardByte}), bytes_(bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuard;
    offset_ = kGuard + (64 - address % 64) % 64 + misalignment;
  }
  std::byte* data() { return storage_.data() + offset_; }
  std::size_t size() const { return bytes_; }
  bool guards_intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      if ((i < offset_ || i >= offset_ + bytes_) && storage_[i] != std::byte{kGuardByte}) {
        return false;
      }
    }
    return true;
  }

 private:
  std::vector<std::byte> storage_;
  std::size_t offset_ = 0;
  std::size_t bytes_;
};

inline std::uint64_t get(const std::byte* data, std::size_t size, std::size_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data + i * size, size);
  return bits;
}

inline void put(std::byte* data, std::size_t size, std::size_t i, std::uint64_t bits) {
  std::memcpy(data + i * size, &bits, size);
}

}  // namespace unisono::kernels
