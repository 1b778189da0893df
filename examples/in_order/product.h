// Products of matrices whose bits do not depend on their shape. A library of products chooses an
// order of the sum by the shape; here each element is the sum over ascending k of a block of the
// inner dimension, and blocks are added over the tree of unisono/tree_sum.hpp. A multiplication and
// its addition are fused and rounded once on every processor, in software on one that has no such
// instruction.
#pragma once

#include <cstddef>
#include <span>

namespace in_order {

// A matrix whose element (i, j) is data[i * row + j * column].
struct View {
  const float* data = nullptr;
  std::size_t row = 0;
  std::size_t column = 1;
};

// One product of a sum: a[rows, depth] times b[depth, columns]. It is added to the terms of its
// block before it. If it ends the block, the block's sum is then added to those of the blocks
// before. The last term ends its block.
struct Term {
  View a = {};
  View b = {};
  std::size_t depth = 0;
  bool ends_block = true;
};

// Columns of a product that are computed together.
inline constexpr std::size_t kTileColumns = 16;
// Writes `columns` columns of b, [depth, columns], as tiles read them: [depth][kTileColumns], zeros
// behind the last column.
void pack(View b, std::size_t depth, std::size_t columns, float* tile);

// c[rows, columns] (+)= the sum of the terms, for one tile of columns. `b` has the matrices b of
// all terms, one after the other, as pack() writes them.
struct Tile {
  std::size_t rows = 0;
  std::size_t columns = kTileColumns;
  std::span<const Term> terms = {};
  const float* b = nullptr;
  float* c = nullptr;
  std::size_t c_step = 0;  // elements from one row to the next
  bool add = false;
};
void multiply(const Tile& tile);

// The same for any number of columns, which are packed tile by tile.
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
