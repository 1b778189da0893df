// The loops of the limits: sums and copies at the speed of the memory. `stream`: with stores that
// bypass the caches.
#pragma once

#include <cstddef>
#include <span>

namespace unisono::bench {

// out_j[i] = sum over all ins of in_k[i], for i in [begin, end).
void sum_into_all(std::span<const float* const> ins, std::span<float* const> outs,
                  std::size_t begin, std::size_t end, bool stream);

void copy_bytes(void* out, const void* in, std::size_t bytes, bool stream);

}  // namespace unisono::bench
