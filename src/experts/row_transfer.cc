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

std::uint64_t fingerprint(std::span<const std::byte> memory) {
  constexpr std::size_t kMostWords = 512;
  Hash hash;
  std::uint64_t word = 0;
  const std::size_t words = memory.size() / sizeof(word);
  const std::size_t step = (words + kMostWords - 1) / kMostWords;
  for (std::size_t i = 0; i < words; i += step) {
    std::memcpy(&word, memory.data() + i * sizeof(word), sizeof(word));
    hash.add(word);
  }
  if (!memory.empty()) {  // the end, even if it is less than a word
    word = 0;
    const std::size_t last = std::min(memory.size(), sizeof(word));
    std::memcpy(&word, memory.data() + memory.size() - last, last);
    hash.add(word);
  }
  return hash.value();
}

}  // namespace unisono::experts
