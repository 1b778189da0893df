// Computes each thread's part of a call that a team of threads makes.
#pragma once

#include <cstddef>
#include <vector>

#include "unisono/call.hpp"

namespace unisono::comm {

struct Slice {
  std::size_t first = 0;  // in elements
  std::size_t count = 0;
};

// Returns how many of `threads` threads move a vector (or one rank's part) of `count` elements.
int movers_of(std::size_t count, Dtype dtype, int threads);
// Returns the slice of thread `thread`; empty if `thread` is not below `movers`. All slices except
// the last one are whole cache lines.
Slice slice_of(std::size_t count, Dtype dtype, int movers, int thread);

// Storage for the counts and offsets of one thread's slice of n ranks' parts.
struct Parts {
  explicit Parts(int ranks)
      : counts(static_cast<std::size_t>(ranks)), displs(static_cast<std::size_t>(ranks)) {}
  std::vector<std::size_t> counts;
  std::vector<std::size_t> displs;
};

// Returns the call that moves `slice` of `whole`. Its counts are stored in `parts`.
Call sliced(const Call& whole, Slice slice, Parts& parts);

}  // namespace unisono::comm
