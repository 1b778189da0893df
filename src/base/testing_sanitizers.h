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

}  // namespace unisono
