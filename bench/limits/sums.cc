#include "limits/sums.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define UNISONO_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define UNISONO_CLONES
#endif

namespace unisono::bench {
namespace {

// A block of sums stays in the first-level cache between the passes over the inputs.
constexpr std::size_t kBlock = 2048;

}  // namespace

UNISONO_CLONES void add_two(float* __restrict out, const float* __restrict a,
                            const float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = a[i] + b[i];
  }
}

UNISONO_CLONES void add_two_into_two(float* __restrict out0, float* __restrict out1,
                                     const float* __restrict a, const float* __restrict b,
                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    out0[i] = sum;
    out1[i] = sum;
  }
}

UNISONO_CLONES void add_into(float* __restrict out, const float* __restrict a, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] += a[i];
  }
}

void copy_bytes(void* out, const void* in, std::size_t bytes, bool stream) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (stream) {
    auto* to = static_cast<float*>(out);
    const auto* from = static_cast<const float*>(in);
    // Streaming stores want aligned lines: the benchmark's buffers start on a page.
    for (; done + 64 <= bytes; done += 64) {
      const std::size_t i = done / sizeof(float);
      _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
      _mm_stream_ps(to + i + 4, _mm_loadu_ps(from + i + 4));
      _mm_stream_ps(to + i + 8, _mm_loadu_ps(from + i + 8));
      _mm_stream_ps(to + i + 12, _mm_loadu_ps(from + i + 12));
    }
    _mm_sfence();
  }
#else
  static_cast<void>(stream);
#endif
  std::memcpy(static_cast<char*>(out) + done, static_cast<const char*>(in) + done, bytes - done);
}

void sum_into_all(std::span<const float* const> ins, std::span<float* const> outs,
                  std::size_t begin, std::size_t end, bool stream) {
  if (ins.size() == 2 && outs.size() == 2 && !stream) {
    add_two_into_two(outs[0] + begin, outs[1] + begin, ins[0] + begin, ins[1] + begin, end - begin);
    return;
  }
  alignas(64) std::array<float, kBlock> sums;
  for (std::size_t at = begin; at < end; at += kBlock) {
    const std::size_t count = std::min(kBlock, end - at);
    add_two(sums.data(), ins[0] + at, ins[1] + at, count);
    for (const float* in : ins.subspan(2)) {
      add_into(sums.data(), in + at, count);
    }
    for (float* out : outs) {
      copy_bytes(out + at, sums.data(), count * sizeof(float), stream);
    }
  }
}

}  // namespace unisono::bench
