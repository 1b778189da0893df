// Which part of a call each thread of a team makes.
#pragma once

#include <cstddef>
#include <vector>

#include "unisono/call.hpp"

namespace unisono::comm {

struct Slice {
  std::size_t first = 0;  // in elements
  std::size_t count = 0;
};

// How many threads of `threads` move a vector, or a part of one rank, of `count` elements.
int movers_of(std::size_t count, Dtype dtype, int threads);
// The slice of thread `thread` of `movers`; none for those behind them. A slice that is not the
// last is whole cache lines.
Slice slice_of(std::size_t count, Dtype dtype, int movers, int thread);

// Room for the counts and offsets of one thread's slice of the parts of n ranks.
struct Parts {
  explicit Parts(int ranks)
      : counts(static_cast<std::size_t>(ranks)), displs(static_cast<std::size_t>(ranks)) {}
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displs;
};

// The call that moves `slice` of `whole`. Its counts lie in `parts`.
Call sliced(const Call& whole, Slice slice, Parts& parts);

}  // namespace unisono::comm
