// Interpolates the residuals of a trend between the measurements (a Gaussian process, also known as
// kriging).
//
// A machine's protocols and thresholds cause bumps in its times that no short formula has. Near a
// measurement, with the same collective and about as many ranks and bytes, the prediction deviates
// from the trend as the measurement does; far from all measurements, the prediction follows the
// trend. Measurements that contradict their neighbours strongly (a disturbed run) get little
// weight.
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
  double log_ratio = 0;  // of the measured time over the trend
  double noise = 0;      // relative error of the measured time
};

// Returns the logarithm to base 2 of a size; sizes below one byte count as one byte.
double octaves(double bytes);
// Returns the expected correlation of two residuals.
double covariance(const Residual& a, const Residual& b, double scale);

class Residuals {
 public:
  Residuals() = default;
  // The complete state: the residuals after merging, and their weights.
  struct State {
    std::vector<Residual> known = {};
    std::vector<double> weights = {};
    double scale = 1;  // scale of the expected variance
  };
  // Restores a saved state. REQUIRES: as many weights as residuals.
  explicit Residuals(State state) : state_(std::move(state)) {}
  const State& state() const { return state_; }

  // Returns the expected residual; 0 far from all measurements.
  double expected(Collective collective, int ranks, double bytes) const;

 private:
  State state_;
};

}  // namespace unisono::cost
