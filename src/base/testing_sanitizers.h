// The sanitizers that a test was built with.
#pragma once

namespace unisono {

#if defined(__SANITIZE_THREAD__)  // g++
constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)  // clang++
constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool kThreadSanitizer = false;
#endif

#if defined(UNISONO_SANITIZED)  // by any sanitizer
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Returns how often a random test repeats: a sanitizer, which slows each round down, runs a tenth.
constexpr int repetitions(int wanted) {
  return kSanitized ? (wanted + 9) / 10 : wanted;
}

}  // namespace unisono
