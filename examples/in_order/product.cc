#include "product.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>

namespace in_order {
namespace {

constexpr std::size_t kTileRows = 6;
// A tree over blocks needs a sum by level.
constexpr std::size_t kLevels = std::numeric_limits<std::size_t>::digits;

using Eight [[gnu::vector_size(32)]] = float;
struct Sums {
  Eight of[kTileRows][2];
};

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
#pragma GCC unroll 8  // keeps the sums in registers
    for (std::size_t i = 0; i < Rows; ++i) {
      const float factor = from[i * a.row];
      sums[i][0] += factor * low;
      sums[i][1] += factor * high;
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

// The sums over all blocks of some rows, by the tree, in levels[0]. A binary counter: after n
// blocks the bits of n are the subtrees that are complete.
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

#if defined(__x86_64__) && defined(__GNUC__)
[[gnu::target_clones("avx2", "default")]]
#endif
void multiply_tile_rows(const Tile& tile, std::size_t row, std::size_t rows, Sums* levels) {
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

void pack(View b, std::size_t depth, std::size_t columns, float* tile) {
  if (columns < kTileColumns) {
    std::fill_n(tile, depth * kTileColumns, 0.0F);
  }
  if (b.column == 1) {
    for (std::size_t k = 0; k < depth; ++k) {
      std::copy_n(b.data + k * b.row, columns, tile + k * kTileColumns);
    }
    return;
  }
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t k = 0; k < depth; ++k) {
      tile[k * kTileColumns + column] = b.data[k * b.row + column * b.column];
    }
  }
}

void multiply(const Tile& tile) {
  Sums levels[kLevels];
  float sums[kTileRows][kTileColumns] = {};  // without terms
  for (std::size_t row = 0; row < tile.rows; row += kTileRows) {
    const std::size_t rows = std::min(kTileRows, tile.rows - row);
    if (!tile.terms.empty()) {
      multiply_tile_rows(tile, row, rows, levels);
      std::memcpy(sums, levels, sizeof(sums));
    }
    for (std::size_t i = 0; i < rows; ++i) {
      float* const to = tile.c + (row + i) * tile.c_step;
      for (std::size_t j = 0; j < tile.columns; ++j) {
        to[j] = tile.add ? to[j] + sums[i][j] : sums[i][j];
      }
    }
  }
}

void multiply(const Product& p) {
  std::size_t depth = 0;
  for (const Term& term : p.terms) {
    depth += term.depth;
  }
  const auto packed = std::make_unique_for_overwrite<float[]>(depth * kTileColumns);
  for (std::size_t j = 0; j < p.columns; j += kTileColumns) {
    const std::size_t columns = std::min(kTileColumns, p.columns - j);
    float* to = packed.get();
    for (const Term& term : p.terms) {
      pack({term.b.data + j * term.b.column, term.b.row, term.b.column}, term.depth, columns, to);
      to += term.depth * kTileColumns;
    }
    multiply(Tile{.rows = p.rows,
                  .columns = columns,
                  .terms = p.terms,
                  .b = packed.get(),
                  .c = p.c + j,
                  .c_step = p.c_step,
                  .add = p.add});
  }
}

}  // namespace in_order
