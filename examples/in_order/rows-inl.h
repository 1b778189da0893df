// Computes some rows of a tile. Every file that includes this header compiles it for its own
// instruction set.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "product.h"

#if defined(__FMA__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace in_order {

inline constexpr std::size_t kTileRows = 6;
// A tree over blocks needs one partial sum per level.
inline constexpr std::size_t kLevels = std::numeric_limits<std::size_t>::digits;

using Eight [[gnu::vector_size(32)]] = float;
struct Sums {
  Eight of[kTileRows][2];
};

namespace {

// Computes sum += factor * b, rounded once.
[[gnu::always_inline]] inline void add_product(float factor, const Eight& b, Eight& sum) {
#if defined(__FMA__)
  sum = _mm256_fmadd_ps(_mm256_set1_ps(factor), b, sum);
#elif defined(__aarch64__)
  float32x4_t more[2];
  float32x4_t sums[2];
  std::memcpy(more, &b, sizeof(more));
  std::memcpy(sums, &sum, sizeof(sums));
  sums[0] = vfmaq_n_f32(sums[0], more[0], factor);
  sums[1] = vfmaq_n_f32(sums[1], more[1], factor);
  std::memcpy(&sum, sums, sizeof(sums));
#else
  for (int i = 0; i < 8; ++i) {
    sum[i] = std::fma(factor, b[i], sum[i]);
  }
#endif
}

// Adds a term to the sums of a block: Rows rows of a, kTileColumns columns of b.
template <std::size_t Rows>
[[gnu::always_inline]] inline void add_term(const View& a, const float* b, std::size_t depth,
                                            bool begins_block, Sums& out) {
  Eight sums[Rows][2] = {};
  if (!begins_block) {
    std::memcpy(sums, out.of, sizeof(sums));
  }
  const float* from = a.data;
  for (std::size_t k = 0; k < depth; ++k, b += kTileColumns, from += a.column) {
    Eight low;
    Eight high;
    std::memcpy(&low, b, sizeof(low));
    std::memcpy(&high, b + 8, sizeof(high));
#pragma GCC unroll 8  // so that the sums stay in registers
    for (std::size_t i = 0; i < Rows; ++i) {
      const float factor = from[i * a.row];
      add_product(factor, low, sums[i][0]);
      add_product(factor, high, sums[i][1]);
    }
  }
  std::memcpy(out.of, sums, sizeof(sums));
}

template <std::size_t Rows>
[[gnu::always_inline]] inline void add_to(Sums& lower, const Sums& upper) {
  for (std::size_t i = 0; i < Rows; ++i) {
    lower.of[i][0] += upper.of[i][0];
    lower.of[i][1] += upper.of[i][1];
  }
}

// Sums all blocks of some rows by the tree, into levels[0]. `blocks` is a binary counter: after n
// blocks, the set bits of n are the complete subtrees.
template <std::size_t Rows>
[[gnu::always_inline]] inline void multiply_rows(const Tile& tile, std::size_t row, Sums* levels) {
  const float* b = tile.b;
  std::size_t blocks = 0;
  std::size_t top = 0;
  bool begins_block = true;
  for (const Term& term : tile.terms) {
    add_term<Rows>({term.a.data + row * term.a.row, term.a.row, term.a.column}, b, term.depth,
                   begins_block, levels[top]);
    b += term.depth * kTileColumns;
    begins_block = term.ends_block;
    if (begins_block) {
      ++top;
      ++blocks;
      for (int level = std::countr_zero(blocks); level > 0; --level, --top) {
        add_to<Rows>(levels[top - 2], levels[top - 1]);
      }
    }
  }
  for (; top > 1; --top) {
    add_to<Rows>(levels[top - 2], levels[top - 1]);
  }
}

inline void multiply_tile_rows(const Tile& tile, std::size_t row, std::size_t rows, Sums* levels) {
  static_assert(kTileRows == 6);
  switch (rows) {
    case 1:
      return multiply_rows<1>(tile, row, levels);
    case 2:
      return multiply_rows<2>(tile, row, levels);
    case 3:
      return multiply_rows<3>(tile, row, levels);
    case 4:
      return multiply_rows<4>(tile, row, levels);
    case 5:
      return multiply_rows<5>(tile, row, levels);
    default:
      return multiply_rows<6>(tile, row, levels);
  }
}

}  // namespace
}  // namespace in_order
