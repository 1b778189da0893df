// Sums and copies at memory speed, for the limits. `stream`: use stores that bypass the caches.
#pragma once

#include <cstddef>
#include <span>

namespace unisono::bench {

// Writes the sum over all `ins` to each of `outs`, for elements [begin, end).
void sum_into_all(std::span<const float* const> ins, std::span<float* const> outs,
                  std::size_t begin, std::size_t end, bool stream);

void copy_bytes(void* out, const void* in, std::size_t bytes, bool stream);

}  // namespace unisono::bench
