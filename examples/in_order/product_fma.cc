// Product kernel for x86 processors with fused multiply-add.
#include "rows-inl.h"

namespace in_order {

void multiply_rows_by_fma(const Tile& tile, std::size_t row, std::size_t rows, Sums* levels);

void multiply_rows_by_fma(const Tile& tile, std::size_t row, std::size_t rows, Sums* levels) {
  multiply_tile_rows(tile, row, rows, levels);
}

}  // namespace in_order
