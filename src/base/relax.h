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

// Begins to fetch a cache line that the caller will write.
inline void prefetch_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  // The compiler emits this instruction only for processors that it is told about. All 64-bit
  // processors accept it.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace unisono
