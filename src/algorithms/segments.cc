#include "algorithms/segments.h"

#include <algorithm>
#include <cmath>

namespace unisono {
namespace {

constexpr double kMostSegments = 1 << 20;

int at(double fill, double bytes, double alpha, double beta) {
  const double most = std::clamp(bytes, 1.0, kMostSegments);
  if (fill <= 0 || bytes * beta <= 0) {
    return 1;
  }
  const double best = alpha > 0 ? std::sqrt(fill * bytes * beta / alpha) : most;
  const double below = std::clamp(std::floor(best), 1.0, most);
  const double above = std::min(below + 1, most);
  const auto time = [&](double s) { return (fill + s) * (alpha + bytes / s * beta); };
  return static_cast<int>(time(above) < time(below) ? above : below);
}

}  // namespace

int optimal_segments(int fill, double bytes, double alpha, double beta) {
  return at(fill, bytes, alpha, beta);
}

int optimal_segments(const Algorithm& algorithm, Shape shape, double bytes, double alpha,
                     double beta) {
  const auto steps = [&](int segments) {
    shape.parameters.segments = segments;
    return static_cast<double>(algorithm.steps(complete(algorithm, shape)));
  };
  // Over a long way, as two trees that share the segments differ by one.
  constexpr int kShort = 64;
  constexpr int kLong = 192;
  const double rate = (steps(kLong) - steps(kShort)) / (kLong - kShort);
  return rate <= 0 ? 1 : at((steps(kShort) - rate * kShort) / rate, bytes, alpha, beta);
}

}  // namespace unisono
