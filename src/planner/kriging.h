// Predicts a quantity at a new place from values measured at other places, and the error of the
// prediction. The covariance of the values is given (a Gaussian process, also known as kriging).
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
  // `covariance`: of all pairs of places, row by row, with each value's noise on the diagonal.
  // REQUIRES: it is positive definite.
  Kriging(std::vector<double> covariance, std::vector<double> values);

  std::size_t size() const { return values_.size(); }
  // `with`: the covariances of the new place with each known place.
  double mean(std::span<const double> with) const;
  // `own`: the variance at the new place, including noise.
  Answer at(std::span<const double> with, double own) const;
  // Returns the prediction of each known value from all others.
  std::vector<Answer> left_out() const;

 private:
  std::vector<double> solved(std::vector<double> right) const;

  std::vector<double> values_;
  std::vector<double> lower_;    // lower factor of the Cholesky decomposition, row by row
  std::vector<double> weights_;  // weight of each value in a mean
};

}  // namespace unisono::planner
