// Kernel function types: plain functions over arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::kernels {

// `streaming` bypasses the cache with non-temporal stores, for outputs larger than the last-level
// cache. Call fence_streaming() before publishing streamed data to another core.
enum class Store : unsigned char { cached, streaming };

// Computes targets[0..n)[i] = sources[0][i] op sources[1][i] op ..., left to right, for i < count.
// f16, bf16 and fp8 accumulate in f32 and round once at the end; integers wrap. With one source,
// copies it. A target may be equal to a source; other overlap is not allowed. avg and premul_sum
// reduce as sum. No alignment is required. Never throws, never allocates.
//
// land, lor and lxor give 0 or 1. For bool, sum and max are lor, prod and min are land, and a
// bitwise operation equals the logical operation. min and max of floats are NaN if any operand is
// NaN; of -0 and +0, the earlier source's value is kept. REQUIRES: at least one target, 1 to
// kMaxSources sources.
using ReduceFunction = void (*)(void* const* targets, int target_count, const void* const* sources,
                                int source_count, std::size_t count, Store store);

// Sources whose bit in `sources` is set are multiplied by `factor`.
struct SourceScale {
  double factor = 1;
  std::uint64_t sources = 0;
};

// Sums floats like ReduceFunction, with some of the sources scaled. Each product is rounded
// separately. REQUIRES: at least two sources.
using ScaledSumFunction = void (*)(void* const* targets, int target_count,
                                   const void* const* sources, int source_count, std::size_t count,
                                   Store store, SourceScale scale);

// Computes target[i] = source[i] * factor (premul_sum) or source[i] / divisor (avg). Floats
// narrower than f32 are computed in f32 and rounded once. Integers with a whole factor or divisor
// are computed in integers and wrap. Integers with a fraction are computed in f64 and saturate.
// Integer results truncate towards zero. target may equal source. The functions are nullptr for
// bool. find_widen() and find_average() use a wider type on one side (kernels.h). REQUIRES: divisor
// != 0 for integers.
using ScaleFunction = void (*)(void* target, const void* source, std::size_t count, double factor);

}  // namespace unisono::kernels
