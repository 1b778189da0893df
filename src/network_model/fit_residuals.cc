#include "network_model/fit_residuals.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "network_model/matrix.h"

namespace unisono::network_model {
namespace {

using cost::Residual;

constexpr double kNoise = 0.02;  // least relative error of a measurement
constexpr double kOutlier = 4;   // in standard deviations
constexpr int kRounds = 8;

// Averages the residuals of one collective and rank count whose sizes round to the same part of an
// octave.
std::vector<Residual> merged(std::vector<Residual> known, int parts) {
  const auto key = [parts](const Residual& r) {
    return std::tuple(r.collective, r.ranks, std::lround(cost::octaves(r.bytes) * parts));
  };
  std::stable_sort(known.begin(), known.end(),
                   [&](const Residual& a, const Residual& b) { return key(a) < key(b); });
  std::vector<Residual> result;
  for (std::size_t first = 0; first < known.size();) {
    std::size_t end = first;
    double sum = 0;
    double size = 0;
    double variance = 0;
    for (; end < known.size() && key(known[end]) == key(known[first]); ++end) {
      sum += known[end].log_ratio;
      size += cost::octaves(known[end].bytes);
      variance += known[end].noise * known[end].noise;
    }
    const auto count = static_cast<double>(end - first);
    Residual mean = known[first];
    mean.log_ratio = sum / count;
    mean.bytes = std::exp2(size / count);
    mean.noise = std::sqrt(variance) / count;
    result.push_back(mean);
    first = end;
  }
  return result;
}

}  // namespace

cost::Residuals fit_residuals(std::vector<Residual> residuals) {
  cost::Residuals::State state{.known = std::move(residuals)};
  std::vector<Residual>& known = state.known;
  for (int parts = 8; known.size() > kMostResiduals && parts >= 1; parts /= 2) {
    known = merged(std::move(known), parts);
  }
  const std::size_t size = known.size();
  double squares = 0;
  for (const Residual& residual : known) {
    squares += residual.log_ratio * residual.log_ratio;
  }
  if (size > 0) {
    const double expected = cost::covariance(known.front(), known.front(), 1);
    state.scale = std::max(1.0, squares / static_cast<double>(size) / expected);
  }

  std::vector<double> values(size);
  Matrix covariances(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = known[i].log_ratio;
    for (std::size_t j = 0; j < size; ++j) {
      covariances.at(i, j) = cost::covariance(known[i], known[j], state.scale);
    }
  }
  // A point that deviates too much from the prediction by all other points gets that deviation as
  // its noise.
  std::vector<double> least(size);
  for (std::size_t i = 0; i < size; ++i) {
    least[i] = kNoise * kNoise + known[i].noise * known[i].noise;
  }
  std::vector<double> noise = least;
  for (int round = 0; round < kRounds && size > 0; ++round) {
    Matrix matrix = covariances;
    for (std::size_t i = 0; i < size; ++i) {
      matrix.at(i, i) += noise[i];
    }
    const Cholesky solver(std::move(matrix));
    state.weights = solver.solve(values);
    const std::vector<double> precision = solver.inverse_diagonal();
    for (std::size_t i = 0; i < size; ++i) {
      const double off = state.weights[i] / precision[i];
      const double variance = 1 / precision[i] - noise[i];
      const bool outlier = std::abs(off) > kOutlier * std::sqrt(variance + least[i]);
      noise[i] = outlier ? std::max(off * off - variance, least[i]) : least[i];
    }
  }
  return cost::Residuals(std::move(state));
}

}  // namespace unisono::network_model
