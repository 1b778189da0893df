#include "cost/residuals.h"

#include <algorithm>
#include <cmath>

namespace unisono::cost {
namespace {

constexpr double kBump = 0.08;      // deviation from the trend near one size
constexpr double kBumpOctaves = 2;  // range of a bump
constexpr double kLevel = 0.1;      // deviation from the trend at all sizes
constexpr double kLevelOctaves = 30;
constexpr double kRankOctaves = 1;  // range of both, in the number of ranks
constexpr double kOtherCollective = 0.5;

}  // namespace

double octaves(double bytes) {
  return std::log2(std::max(bytes, 1.0));
}

double covariance(const Residual& a, const Residual& b, double scale) {
  const double size = std::abs(octaves(a.bytes) - octaves(b.bytes));
  const double ranks = std::abs(std::log2(static_cast<double>(a.ranks) / b.ranks));
  const double reach = std::sqrt(3.0) * size / kBumpOctaves;
  const double bump = kBump * kBump * (1 + reach) * std::exp(-reach);
  const double level = kLevel * kLevel * std::exp(-size / kLevelOctaves);
  return scale * (a.collective == b.collective ? 1 : kOtherCollective) *
         std::exp(-ranks / kRankOctaves) * (bump + level);
}

double Residuals::expected(Collective collective, int ranks, double bytes) const {
  const Residual asked{.collective = collective, .ranks = ranks, .bytes = bytes};
  double sum = 0;
  for (std::size_t i = 0; i < state_.known.size(); ++i) {
    sum += state_.weights[i] * covariance(asked, state_.known[i], state_.scale);
  }
  return sum;
}

}  // namespace unisono::cost
