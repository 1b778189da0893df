// Copies with memcpy, or with non-temporal stores for data that should not displace the cache.
#include <cstdint>
#include <cstring>

#include "base/private.h"
#include "kernels/kernels.h"
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/copy.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must come first: includes this file again
#include "hwy/highway.h"
#include "kernels/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace unisono::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Copies whole cache lines. REQUIRES: `target` is aligned to a line, and `bytes` is a multiple of
// four lines.
void copy_lines(std::byte* target, const std::byte* source, std::size_t bytes) {
  constexpr std::size_t kStep = 256;
  constexpr std::size_t kAhead = 1024;
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < bytes; i += kStep) {
    for (std::size_t line = 0; line < kStep; line += 64) {
      hwy::Prefetch(source + i + kAhead + line);
    }
#pragma GCC unroll 16
    for (std::size_t j = 0; j < kStep; j += lanes) {
      store_streaming(d, load(d, source + i + j), target + i + j);
    }
  }
}

}  // namespace unisono::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace unisono::kernels {
namespace {
HWY_EXPORT(copy_lines);

void copy_streaming(std::byte* target, const std::byte* source, std::size_t bytes) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(target) % 64;
  const std::size_t head = (64 - past) % 64;
  const std::size_t lines = (bytes - head) & ~std::size_t{255};
  std::memcpy(target, source, head);
  HWY_DYNAMIC_DISPATCH(copy_lines)(target + head, source + head, lines);
  std::memcpy(target + head + lines, source + head + lines, bytes - head - lines);
}

}  // namespace

UNISONO_PRIVATE void copy(void* target, const void* source, std::size_t bytes,
                          Store store) noexcept {
  // For less than a page, streaming stores only cost time.
  constexpr std::size_t kStreamingMin = 4096;
  if (store == Store::streaming && bytes >= kStreamingMin) {
    copy_streaming(static_cast<std::byte*>(target), static_cast<const std::byte*>(source), bytes);
  } else if (bytes != 0) {
    std::memcpy(target, source, bytes);
  }
}

UNISONO_PRIVATE void fence_streaming() noexcept {
  hwy::FlushStream();
}

}  // namespace unisono::kernels
#endif
