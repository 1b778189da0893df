// The types of the kernels: plain functions over arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace unisono::kernels {

// `streaming` bypasses the cache (non-temporal stores): for outputs beyond the last-level cache.
// Whoever publishes streamed data to another core calls fence_streaming() first.
enum class Store : unsigned char { cached, streaming };

// targets[0..n)[i] = sources[0][i] op sources[1][i] op ..., left to right, for i < count. f16, bf16
// and fp8 accumulate in f32 with one rounding at the end; integers wrap. With one source it is a
// copy. A target may be equal to a source; other overlap is not allowed. avg and premul_sum reduce
// as sum. No alignment is required. Never throws, never allocates.
//
// land, lor and lxor give 0 or 1. bool: sum and max are lor, prod and min are land, and so are the
// bitwise ones. min and max of floats are NaN if any operand is; of -0 and +0 the earlier source's
// stays. REQUIRES: at least one target, 1 to kMaxSources sources.
using ReduceFunction = void (*)(void* const* targets, int target_count, const void* const* sources,
                                int source_count, std::size_t count, Store store);

// The sources with a bit in `sources` are multiplied by `factor`.
struct SourceScale {
  double factor = 1;
  std::uint64_t sources = 0;
};

// A sum as of ReduceFunction, of floats with some of the sources scaled. Each product is rounded by
// itself. REQUIRES: at least two sources.
using ScaledSumFunction = void (*)(void* const* targets, int target_count,
                                   const void* const* sources, int source_count, std::size_t count,
                                   Store store, SourceScale scale);

// target[i] = source[i] * factor (premul_sum), or source[i] / divisor (avg; integers truncate
// towards zero). In f32 for narrower floats, one rounding. target may equal source. Integers: a
// factor without a fraction multiplies in integers and wraps, one with a fraction in f64,
// truncated and saturated. nullptr for bool. REQUIRES: divisor != 0 for integers.
// The two that average narrow integers have a wider type on one side, see kernels.h.
using ScaleFunction = void (*)(void* target, const void* source, std::size_t count, double factor);

}  // namespace unisono::kernels
