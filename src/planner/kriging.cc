#include "planner/kriging.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace unisono::planner {

Kriging::Kriging(std::vector<double> covariance, std::vector<double> values)
    : values_(std::move(values)), lower_(std::move(covariance)) {
  const std::size_t n = size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = lower_[i * n + j];
      for (std::size_t k = 0; k < j; ++k) {
        sum -= lower_[i * n + k] * lower_[j * n + k];
      }
      lower_[i * n + j] = i == j ? std::sqrt(sum) : sum / lower_[j * n + j];
    }
  }
  weights_ = solved(values_);
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) {
      weights_[i] -= lower_[k * n + i] * weights_[k];
    }
    weights_[i] /= lower_[i * n + i];
  }
}

std::vector<double> Kriging::solved(std::vector<double> right) const {
  const std::size_t n = size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      right[i] -= lower_[i * n + k] * right[k];
    }
    right[i] /= lower_[i * n + i];
  }
  return right;
}

double Kriging::mean(std::span<const double> with) const {
  double sum = 0;
  for (std::size_t i = 0; i < with.size(); ++i) {
    sum += with[i] * weights_[i];
  }
  return sum;
}

Kriging::Answer Kriging::at(std::span<const double> with, double own) const {
  double known = 0;
  for (const double part : solved({with.begin(), with.end()})) {
    known += part * part;
  }
  return {.mean = mean(with), .deviation = std::sqrt(std::max(0.0, own - known))};
}

// The diagonal of the inverse gives the left-out predictions (Rasmussen and Williams, 2006,
// equation 5.12).
std::vector<Kriging::Answer> Kriging::left_out() const {
  const std::size_t n = size();
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> unit(n);
    unit[i] = 1;
    double inverse = 0;
    for (const double part : solved(std::move(unit))) {
      inverse += part * part;
    }
    answers.push_back(
        {.mean = values_[i] - weights_[i] / inverse, .deviation = std::sqrt(1 / inverse)});
  }
  return answers;
}

}  // namespace unisono::planner
