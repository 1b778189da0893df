// Pauses between two polls of memory that another core writes.
#pragma once

namespace unisono {

// Lets the core's other hardware thread run, and leaves the polled cache line with its writer.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace unisono
