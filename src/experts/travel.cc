#include "experts/travel.h"

#include "kernels/kernels.h"

namespace unisono::experts {

void Travel::write(std::size_t row, const std::byte* from, kernels::Store store) const {
  std::byte* to = out.data() + row * out_row_bytes;
  if (coding == RowCoding::none) {
    kernels::copy(to, from, row_bytes, store);
  } else {
    functions.decode(to, from, count, store);
  }
}

}  // namespace unisono::experts
