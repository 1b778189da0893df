// What this machine allows, measured in the same run: the neighbour that says whether a time is
// good.
//
// limit(size) = the larger of (a) one cache line's way between two cores and (b) the time in which
// every rank that receives data copies as many bytes as it must receive, all at once.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "bench/cases.h"
#include "unisono/communicator.hpp"

namespace unisono::cli {

class Limit {
 public:
  explicit Limit(Communicator& comm);
  // 0: no limit is known (one rank, several hosts). Collective: measures each size once.
  double time_us(const Case& row, const Layout& layout);
  double hop_us() const { return hop_us_; }

 private:
  double copy_us(std::uint64_t bytes, bool alone);

  Communicator& comm_;
  double hop_us_ = 0;
  std::map<std::pair<std::uint64_t, bool>, double> copies_;
};

// One way of a cache line between two CPUs of this process, in microseconds; 0: it has only one.
double measure_hop_us();

}  // namespace unisono::cli
