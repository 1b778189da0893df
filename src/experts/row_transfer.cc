#include "experts/row_transfer.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "kernels/kernels.h"

namespace unisono::experts {

void RowTransfer::write(std::size_t row, const std::byte* from, kernels::Store store) const {
  std::byte* to = out.data() + row * out_row_bytes;
  if (form.coding == RowCoding::none) {
    kernels::copy(to, from, row_bytes, store);
  } else if (is_rounded) {
    void* const target = to;
    functions.round(&target, 1, from, count, store);
  } else {
    functions.decode(to, from, count, store);
  }
}

}  // namespace unisono::experts
