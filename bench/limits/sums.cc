#include "limits/sums.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace unisono::bench {
namespace {

// Sums are computed in blocks that stay in the first-level cache between passes over the inputs.
constexpr std::size_t kBlock = 2048;

// These loops are inlined into a function per instruction set.
[[gnu::always_inline]] inline void add_two(float* __restrict out, const float* __restrict a,
                                           const float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] = a[i] + b[i];
  }
}

[[gnu::always_inline]] inline void add_two_into_two(float* __restrict out0, float* __restrict out1,
                                                    const float* __restrict a,
                                                    const float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    out0[i] = sum;
    out1[i] = sum;
  }
}

[[gnu::always_inline]] inline void add_into(float* __restrict out, const float* __restrict a,
                                            std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i] += a[i];
  }
}

// Sums one block, into both outputs at once or into `sums`.
struct Block {
  std::span<const float* const> ins;
  std::size_t begin;
  std::size_t count;
};

[[gnu::always_inline]] inline void sum_block(const Block& block, float* sums) {
  add_two(sums, block.ins[0] + block.begin, block.ins[1] + block.begin, block.count);
  for (const float* in : block.ins.subspan(2)) {
    add_into(sums, in + block.begin, block.count);
  }
}

[[gnu::always_inline]] inline void sum_pair(const Block& block, float* out0, float* out1) {
  add_two_into_two(out0 + block.begin, out1 + block.begin, block.ins[0] + block.begin,
                   block.ins[1] + block.begin, block.count);
}

struct Loops {
  void (*sum_block)(const Block&, float*);
  void (*sum_pair)(const Block&, float*, float*);
};

#if defined(__x86_64__)
[[gnu::target("avx2")]] void sum_block_avx2(const Block& block, float* sums) {
  sum_block(block, sums);
}
[[gnu::target("avx2")]] void sum_pair_avx2(const Block& block, float* out0, float* out1) {
  sum_pair(block, out0, out1);
}
#endif
void sum_block_plain(const Block& block, float* sums) {
  sum_block(block, sums);
}
void sum_pair_plain(const Block& block, float* out0, float* out1) {
  sum_pair(block, out0, out1);
}

Loops best_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    return {sum_block_avx2, sum_pair_avx2};
  }
#endif
  return {sum_block_plain, sum_pair_plain};
}

}  // namespace

void copy_bytes(void* out, const void* in, std::size_t bytes, bool stream) {
  std::size_t done = 0;
#if defined(__x86_64__)
  if (stream) {
    auto* to = static_cast<float*>(out);
    const auto* from = static_cast<const float*>(in);
    // Streaming stores need aligned lines; the benchmark's buffers are page-aligned.
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
  static const Loops loops = best_loops();
  if (ins.size() == 2 && outs.size() == 2 && !stream) {
    loops.sum_pair({ins, begin, end - begin}, outs[0], outs[1]);
    return;
  }
  alignas(64) std::array<float, kBlock> sums;
  for (std::size_t at = begin; at < end; at += kBlock) {
    const std::size_t count = std::min(kBlock, end - at);
    loops.sum_block({ins, at, count}, sums.data());
    for (float* out : outs) {
      copy_bytes(out + at, sums.data(), count * sizeof(float), stream);
    }
  }
}

}  // namespace unisono::bench
