// Predicts a quantity at a new place from values measured at others, whose covariance is given
// (a Gaussian process, also known as kriging), and how far off the prediction may be.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace unisono::planner {

class Kriging {
 public:
  struct Answer {
    double mean = 0;
    double deviation = 0;
  };

  Kriging() = default;
  // `covariance`: row by row, of all pairs of places, with each value's own noise on the diagonal.
  // REQUIRES: it is positive definite.
  Kriging(std::vector<double> covariance, std::vector<double> values);

  std::size_t size() const { return values_.size(); }
  // `with`: the covariance of the new place with each known place.
  double mean(std::span<const double> with) const;
  // `own`: the variance at the new place, with its noise.
  Answer at(std::span<const double> with, double own) const;
  // Each known value as the others predict it.
  std::vector<Answer> left_out() const;

 private:
  std::vector<double> solved(std::vector<double> right) const;

  std::vector<double> values_;
  std::vector<double> lower_;    // of the Cholesky decomposition, row by row
  std::vector<double> weights_;  // of each value in a mean
};

}  // namespace unisono::planner
