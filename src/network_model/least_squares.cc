#include "network_model/least_squares.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "network_model/matrix.h"

namespace unisono::network_model {
namespace {

constexpr int kMostIterations = 300;
constexpr double kDifference = 1e-6;

double cost_of(std::span<const double> residuals) {
  double cost = 0;
  for (const double r : residuals) {
    cost += std::sqrt(1 + r * r) - 1;
  }
  return std::isfinite(cost) ? cost : HUGE_VAL;
}

// The normal equations at a point: curvature * step = -gradient.
struct Slope {
  Matrix curvature;
  std::vector<double> gradient;
};

class Descent {
 public:
  explicit Descent(const LeastSquares& problem)
      : problem_(problem), up_(problem.count), down_(problem.count) {}

  double cost(std::span<const double> x) {
    problem_.residuals(x, up_);
    return cost_of(up_);
  }

  Slope slope(std::vector<double> x) {
    const std::size_t size = x.size();
    std::vector<std::vector<double>> columns;
    for (std::size_t i = 0; i < size; ++i) {
      const double at = x[i];
      x[i] = at + kDifference;
      problem_.residuals(x, up_);
      x[i] = at - kDifference;
      problem_.residuals(x, down_);
      x[i] = at;
      std::vector<double>& column = columns.emplace_back(problem_.count);
      for (std::size_t k = 0; k < column.size(); ++k) {
        column[k] = (up_[k] - down_[k]) / (2 * kDifference);
      }
    }
    problem_.residuals(x, up_);
    Slope slope{.curvature = Matrix(size), .gradient = std::vector<double>(size)};
    for (std::size_t k = 0; k < problem_.count; ++k) {
      const double weight = 1 / std::sqrt(1 + up_[k] * up_[k]);
      for (std::size_t i = 0; i < size; ++i) {
        slope.gradient[i] += weight * columns[i][k] * up_[k];
        for (std::size_t j = 0; j < size; ++j) {
          slope.curvature.at(i, j) += weight * columns[i][k] * columns[j][k];
        }
      }
    }
    return slope;
  }

 private:
  const LeastSquares& problem_;
  std::vector<double> up_;
  std::vector<double> down_;
};

// Returns x after one damped step downhill; x itself if the step cannot be computed.
std::vector<double> stepped(const std::vector<double>& x, const Slope& slope, double damping) {
  Matrix damped = slope.curvature;
  for (std::size_t i = 0; i < x.size(); ++i) {
    damped.at(i, i) += damping * (damped.at(i, i) + 1e-9);
  }
  const Cholesky solver(std::move(damped));
  std::vector<double> next = x;
  if (solver.ok()) {
    const std::vector<double> step = solver.solve(slope.gradient);
    for (std::size_t i = 0; i < x.size(); ++i) {
      next[i] -= std::clamp(step[i], -2.0, 2.0);
    }
  }
  return next;
}

}  // namespace

Minimum minimise(const LeastSquares& problem, std::span<const double> start) {
  Descent descent(problem);
  Minimum best{.x = {start.begin(), start.end()}, .cost = descent.cost(start)};
  double damping = 1e-3;
  for (int i = 0; i < kMostIterations && damping < 1e9; ++i) {
    const Slope slope = descent.slope(best.x);
    bool improved = false;
    while (!improved && damping < 1e9) {
      std::vector<double> next = stepped(best.x, slope, damping);
      const double cost = descent.cost(next);
      improved = cost < best.cost;
      if (!improved) {
        damping *= 4;
        continue;
      }
      const double gain = best.cost - cost;
      best = {.x = std::move(next), .cost = cost};
      damping = std::max(damping / 5, 1e-12);
      if (gain < 1e-8 * (1 + cost)) {
        return best;
      }
    }
  }
  return best;
}

}  // namespace unisono::network_model
