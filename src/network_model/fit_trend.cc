#include "network_model/fit_trend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <random>
#include <set>
#include <vector>

#include "base/quantile.h"
#include "network_model/least_squares.h"

namespace unisono::network_model {
namespace {

constexpr double kDeviation = 0.05;   // relative deviation of measurements from the trend
constexpr double kPriorWeight = 0.3;  // weight of the guess against one measurement
constexpr double kFactorSpread = 0.1;
constexpr double kFloorShare = 0.8;  // part of the quickest call's time
constexpr int kStarts = 6;
constexpr std::size_t kParameters = 10;

// In logarithms, in the order of the members of Trend.
using Vector = std::array<double, kParameters>;

// The allowed deviation of each parameter from its guess.
constexpr Vector kSpread = {1, 1, 1, 1.5, 1.5, 1, 1, 1.5, 1, 0.5};

// The parameters to fit besides the common ones.
struct Form {
  bool has_switch = false;
  std::vector<int> byte_counts = {};  // rank counts with their own factor
  std::vector<int> latency_counts = {};
};

cost::Trend trend_of(std::span<const double> x, const Form& form) {
  cost::Trend trend{.floor_s = std::exp(x[0]),
                    .alpha_s = std::exp(x[1]),
                    .beta_s_per_byte = std::exp(x[2]),
                    .ramp_bytes = std::exp(x[3]),
                    .restart_s_per_byte = std::exp(x[4]),
                    .direct_alpha_s = std::exp(x[5]),
                    .direct_beta_s_per_byte = std::exp(x[6]),
                    .gamma_s_per_byte = std::exp(x[7]),
                    .has_switch = form.has_switch,
                    .switch_alpha_s = std::exp(x[8]),
                    .switch_beta_s_per_byte = std::exp(x[9])};
  std::size_t next = kParameters;
  for (const int ranks : form.byte_counts) {
    trend.byte_factors[ranks] = std::exp(x[next++]);
  }
  for (const int ranks : form.latency_counts) {
    trend.latency_factors[ranks] = std::exp(x[next++]);
  }
  return trend;
}

// Guesses the parameters from general properties of machines: the quickest call is mostly floor,
// and the largest vectors show the bandwidth.
Vector guess(std::span<const Measured> measured) {
  double quickest = HUGE_VAL;
  std::vector<double> sizes;
  std::vector<double> messages;
  for (const Measured& point : measured) {
    quickest = std::min(quickest, point.time_s);
    sizes.push_back(point.bytes);
    messages.push_back(std::max(point.work.messages, 1.0));
  }
  std::sort(sizes.begin(), sizes.end());
  const double large = sizes[(sizes.size() - 1) * 7 / 10];
  std::vector<double> betas;
  for (const Measured& point : measured) {
    const double bytes = point.work.share * point.bytes;
    if (point.bytes >= large && bytes > 0) {
      betas.push_back(point.time_s / bytes);
    }
  }
  const double beta = betas.empty() ? 1e-10 : median(betas);
  const double alpha = (1 - kFloorShare) * quickest / median(messages);
  return {std::log(kFloorShare * quickest),
          std::log(alpha),
          std::log(beta),
          std::log(0.3 / 8 * quickest / beta),
          std::log(0.1 * beta),
          std::log(0.74 * alpha),
          std::log(5 * beta),
          std::log(0.02 * beta),
          std::log(0.5 * quickest),
          std::log(3 * beta)};
}

}  // namespace

cost::Trend fit_trend(std::span<const Measured> measured, bool own_latencies) {
  std::set<int> counts;
  for (const Measured& point : measured) {
    counts.insert(point.ranks);
  }
  Form form{.has_switch = counts.size() >= 3};
  if (counts.size() >= 3) {
    form.byte_counts.assign(counts.begin(), counts.end());
  }
  if (counts.size() >= 2 && own_latencies) {
    form.latency_counts.assign(counts.begin(), counts.end());
  }
  const Vector guessed = guess(measured);
  std::vector<double> center(guessed.begin(), guessed.end());
  center.resize(kParameters + form.byte_counts.size() + form.latency_counts.size());
  std::vector<double> spread(kSpread.begin(), kSpread.end());
  spread.resize(center.size(), kFactorSpread);

  LeastSquares problem;
  problem.count = measured.size() + center.size();
  problem.residuals = [&](std::span<const double> x, std::span<double> residuals) {
    const cost::Trend trend = trend_of(x, form);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const Measured& point = measured[i];
      const double time = trend.time_s(point.work, point.ranks, point.bytes);
      residuals[i] = std::log(time / point.time_s) / std::hypot(kDeviation, point.noise);
    }
    for (std::size_t i = 0; i < center.size(); ++i) {
      residuals[measured.size() + i] = kPriorWeight * (x[i] - center[i]) / spread[i];
    }
  };

  std::mt19937_64 random(1);
  Minimum best{.x = {}, .cost = HUGE_VAL};
  for (int start = 0; start < kStarts; ++start) {
    std::vector<double> x = center;
    for (std::size_t i = 0; i < kParameters && start > 0; ++i) {
      const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
      x[i] += 1.2 * kSpread[i] * (2 * unit - 1);
    }
    Minimum minimum = minimise(problem, x);
    if (minimum.cost < best.cost) {
      best = std::move(minimum);
    }
  }
  return trend_of(best.x, form);
}

}  // namespace unisono::network_model
