// The residuals of a trend, interpolated between the measurements (a Gaussian process, also known
// as kriging).
//
// A machine's protocols and thresholds show in its times as bumps that no short formula has. Where
// a measurement is near, of the same collective, about as many ranks and about as many bytes, its
// distance from the trend is expected again; far from all measurements nothing is. Measurements
// that their neighbours contradict by far (a disturbed run) are given little weight.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "unisono/types.hpp"

namespace unisono::cost {

struct Residual {
  Collective collective = Collective::barrier;
  int ranks = 1;
  double bytes = 0;
  double log_ratio = 0;  // of the measured time to the trend
  double noise = 0;      // how far the measured time may be off, in proportion
};

// The logarithm of a size to base 2; sizes below one byte count as one.
double octaves(double bytes);
// The expected correlation of two residuals.
double covariance(const Residual& a, const Residual& b, double scale);

class Residuals {
 public:
  Residuals() = default;
  // All that there is to it: the residuals after merging, and what each counts.
  struct State {
    std::vector<Residual> known = {};
    std::vector<double> weights = {};
    double scale = 1;  // of the expected variance
  };
  // As it was saved. REQUIRES: as many weights as residuals.
  explicit Residuals(State state) : state_(std::move(state)) {}
  const State& state() const { return state_; }

  // 0 where nothing is known.
  double expected(Collective collective, int ranks, double bytes) const;

 private:
  State state_;
};

}  // namespace unisono::cost
