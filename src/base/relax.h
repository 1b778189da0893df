// Between two looks at memory that another core writes.
#pragma once

namespace unisono {

// Lets the other thread of the core have it, and the line that is looked at stay with its writer.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace unisono
