// Solves nonlinear least squares with little influence of outliers (Levenberg-Marquardt method).
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace unisono::network_model {

struct LeastSquares {
  // Writes the residuals of `x`, in units of their expected deviations.
  std::function<void(std::span<const double> x, std::span<double> residuals)> residuals;
  std::size_t count = 0;  // of residuals
};

struct Minimum {
  std::vector<double> x;
  double cost = 0;  // the sum of sqrt(1 + r^2) - 1: r^2/2 for small residuals, |r| for large ones
};

// Returns the nearest local minimum downhill of `start`. Computes derivatives numerically, with
// steps of 1e-6, so x should be in logarithms. Deterministic.
Minimum minimise(const LeastSquares& problem, std::span<const double> start);

}  // namespace unisono::network_model
