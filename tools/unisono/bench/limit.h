// The limit of this machine, measured in the same run, which shows whether a time is good.
//
// limit(row) is the larger of two times:
//   (a) the time in which one cache line gets from one core to another;
//   (b) the time in which the ranks, all at once, copy as many bytes as the collective must move
//       through memory.
// A copy reads a byte and writes one: a rank that must read R bytes and write W bytes moves as much
// as a copy of (R + W) / 2 bytes. Data that all ranks read, such as the vector of a broadcast,
// comes from memory once.
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
  double time_us(const Case& row, const CaseCounts& layout);
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
