#include "product.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "rows-inl.h"

namespace in_order {

#ifdef IN_ORDER_FMA
void multiply_rows_by_fma(const Tile& tile, std::size_t row, std::size_t rows, Sums* levels);
#endif

namespace {

using MultiplyRows = void (*)(const Tile&, std::size_t row, std::size_t rows, Sums* levels);

// Both versions give the same bits: processors without fused instructions compute them in software.
MultiplyRows best_multiply_rows() {
#ifdef IN_ORDER_FMA
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return multiply_rows_by_fma;
  }
#endif
  return multiply_tile_rows;
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
  static const MultiplyRows multiply_rows = best_multiply_rows();
  Sums levels[kLevels];
  float sums[kTileRows][kTileColumns] = {};  // for products without terms
  for (std::size_t row = 0; row < tile.rows; row += kTileRows) {
    const std::size_t rows = std::min(kTileRows, tile.rows - row);
    if (!tile.terms.empty()) {
      multiply_rows(tile, row, rows, levels);
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
