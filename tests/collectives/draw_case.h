// Draws cases of collectives from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "case.h"
#include "oracle.h"

namespace unisono::testing {

// Draws the same numbers on every rank and machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return state_ = scramble(state_); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  int rank_below(int n) { return static_cast<int>(below(static_cast<std::size_t>(n))); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <typename T>
  const T& of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

 private:
  std::uint64_t state_;
};

Case draw_case(Draw& draw, int ranks);
// Returns the names of the algorithms that support the case.
std::vector<std::string> algorithms_for(const Case& one);
// Draws each rank's own choices: the places of its buffers, and the form of the call.
void draw_own_matter(Draw& draw, Case& one);

}  // namespace unisono::testing
