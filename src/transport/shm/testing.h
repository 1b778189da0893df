// For tests: the memory that the ranks of one group share, without what the upper layers store
// there.
#pragma once

#include <cstddef>

#include "transport/shm/layout.h"

namespace unisono::shm {

struct TestLayout {
  explicit constexpr TestLayout(int ranks)
      : lanes(EventCountLayout(ranks).bytes),
        pools((lanes + LaneLayout(ranks).bytes + 4095) & ~std::size_t{4095}),
        bytes(pools + static_cast<std::size_t>(ranks) * kPoolBytes) {}
  std::size_t event_counts = 0;
  std::size_t lanes;
  std::size_t pools;  // [rank]
  std::size_t bytes;
};

}  // namespace unisono::shm
