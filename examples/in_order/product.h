// Matrix products whose bits do not depend on the shape. A matrix library chooses the order of
// addition by the shape. Here the inner dimension is divided into blocks; each block is summed over
// ascending k, and the block sums are added by the tree of unisono/tree_sum.hpp. Every
// multiplication and addition is fused and rounded once, in software on processors without a fused
// instruction.
#pragma once

#include <cstddef>
#include <span>

namespace in_order {

// A matrix with element (i, j) at data[i * row + j * column].
struct View {
  const float* data = nullptr;
  std::size_t row = 0;
  std::size_t column = 1;
};

// One product in a sum of products: a[rows, depth] times b[depth, columns]. It is added to the
// previous terms of its block. If it ends the block, the block's sum is added to the previous
// blocks' sums. The last term must end its block.
struct Term {
  View a = {};
  View b = {};
  std::size_t depth = 0;
  bool ends_block = true;
};

// Columns of a product that are computed together.
inline constexpr std::size_t kTileColumns = 16;
// Copies `columns` columns of b, [depth, columns], to the layout of a tile: [depth][kTileColumns],
// with zeros after the last column.
void pack(View b, std::size_t depth, std::size_t columns, float* tile);

// Computes c[rows, columns] (+)= the sum of the terms, for one tile of columns. `b` contains the
// matrices b of all terms, one after the other, as written by pack().
struct Tile {
  std::size_t rows = 0;
  std::size_t columns = kTileColumns;
  std::span<const Term> terms = {};
  const float* b = nullptr;
  float* c = nullptr;
  std::size_t c_step = 0;  // distance between rows, in elements
  bool add = false;
};
void multiply(const Tile& tile);

// Computes the same for any number of columns, which are packed tile by tile.
struct Product {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::span<const Term> terms = {};
  float* c = nullptr;
  std::size_t c_step = 0;
  bool add = false;
};
void multiply(const Product& product);

}  // namespace in_order
