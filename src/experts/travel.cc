#include "experts/travel.h"

#include <cstring>

#include "base/hash.h"
#include "kernels/kernels.h"

namespace unisono::experts {

void Travel::write(std::size_t row, const std::byte* from, kernels::Store store) const {
  std::byte* to = out.data() + row * out_row_bytes;
  if (coding == RowCoding::none) {
    kernels::copy(to, from, row_bytes, store);
  } else if (is_rounded) {
    void* const target = to;
    functions.round(&target, 1, from, count, store);
  } else {
    functions.decode(to, from, count, store);
  }
}

std::uint64_t fingerprint(std::span<const Travel> travels) {
  constexpr std::size_t kMostWords = 512;
  Hash hash;
  for (const Travel& travel : travels) {
    std::uint64_t word = 0;
    const std::size_t words = travel.in.size() / sizeof(word);
    if (travel.is_coded() || travel.in.empty()) {
      continue;
    }
    if (words == 0) {
      std::memcpy(&word, travel.in.data(), travel.in.size());
      hash.add(word);
      continue;
    }
    const std::size_t step = (words + kMostWords - 1) / kMostWords;
    for (std::size_t i = 0; i < words; i += step) {
      std::memcpy(&word, travel.in.data() + i * sizeof(word), sizeof(word));
      hash.add(word);
    }
    std::memcpy(&word, travel.in.data() + travel.in.size() - sizeof(word), sizeof(word));
    hash.add(word);
  }
  return hash.value();
}

}  // namespace unisono::experts
