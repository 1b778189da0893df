// Sanitizers with which a test was built.
#pragma once

namespace unisono {

#if defined(__SANITIZE_THREAD__)  // g++
constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)  // clang++
constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool kThreadSanitizer = false;
#endif

#if defined(UNISONO_SANITIZED)  // any sanitizer
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// Returns the number of repetitions of a random test: a tenth under a sanitizer, which slows each
// one down.
constexpr int repetitions(int wanted) {
  return kSanitized ? (wanted + 9) / 10 : wanted;
}

}  // namespace unisono
