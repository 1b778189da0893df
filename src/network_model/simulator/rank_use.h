// The times that ranks move data and compute, in the engine for links with one message at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "network_model/simulator/busy_time.h"
#include "network_model/simulator/simulation.h"

namespace unisono::network_model {

class RankUse {
 public:
  // `exact`: measures the time in which any port of a rank is busy. Otherwise measures only the
  // busy time of each port, which costs less.
  RankUse(std::size_t ranks, bool exact) : exact_(exact), ranks_(ranks) {}

  bool is_exact() const { return exact_; }
  void add(int rank, BusyTime::Side side, double begin_us, double end_us) {
    if (exact_) {
      of(rank).busy.add(side, begin_us, end_us);
    }
  }
  // Adds all messages of a rank on one side.
  void add_all(int rank, BusyTime::Side side, double us) {
    (side == BusyTime::sending ? of(rank).sending_us : of(rank).receiving_us) += us;
  }
  void compute(int rank, double us) { of(rank).computing_us += us; }
  // REQUIRES: exact.
  BusyTime& busy(int rank) { return of(rank).busy; }

  std::vector<RankTimes> times(double end_us) const {
    std::vector<RankTimes> times;
    for (const Rank& rank : ranks_) {
      const double moving_us =
          exact_ ? rank.busy.total_us() : std::max(rank.sending_us, rank.receiving_us);
      const double waiting_us = end_us - moving_us - rank.computing_us;
      constexpr double kRounding = 1e-12;
      times.push_back({.moving_us = moving_us,
                       .computing_us = rank.computing_us,
                       .waiting_us = waiting_us > kRounding * end_us ? waiting_us : 0});
    }
    return times;
  }

 private:
  struct Rank {
    BusyTime busy = {};
    double sending_us = 0;
    double receiving_us = 0;
    double computing_us = 0;
  };
  Rank& of(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  bool exact_;
  std::vector<Rank> ranks_;
};

}  // namespace unisono::network_model
