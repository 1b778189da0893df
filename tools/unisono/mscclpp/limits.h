// What a plan that is read may be at most.
#pragma once

#include <cstdint>

namespace unisono::mscclpp {

inline constexpr std::int64_t kMostGpus = 4096;
inline constexpr std::int64_t kMostChunks = 1 << 20;
inline constexpr std::int64_t kMostNumber = 1 << 20;  // of blocks, channels, semaphores

// GPUs, times GPUs, times chunks: what a proof holds of all of them.
inline constexpr std::int64_t kMostContributions = std::int64_t{1} << 30;

}  // namespace unisono::mscclpp
