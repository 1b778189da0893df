#include "trace/align.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace unisono::trace {
namespace {

constexpr double kMostDrift = 500e-6;
constexpr int kRounds = 100;

class ClockBounds {
 public:
  ClockBounds(const std::vector<ClockBound>& at_most, const std::vector<ClockBound>& at_least)
      : at_most_(at_most), at_least_(at_least) {}
  // Returns the highest offset that the bounds allow at this drift.
  double highest(double drift) const {
    double least = std::numeric_limits<double>::infinity();
    for (const ClockBound& bound : at_most_) {
      least = std::min(least, bound.bound - drift * bound.time);
    }
    return least;
  }
  double lowest(double drift) const {
    double most = -std::numeric_limits<double>::infinity();
    for (const ClockBound& bound : at_least_) {
      most = std::max(most, bound.bound - drift * bound.time);
    }
    return most;
  }
  double room(double drift) const { return highest(drift) - lowest(drift); }

 private:
  const std::vector<ClockBound>& at_most_;
  const std::vector<ClockBound>& at_least_;
};

// Returns the position of a concave function's maximum.
double argmax(double low, double high, const std::function<double(double)>& value) {
  for (int round = 0; round < kRounds; ++round) {
    const double third = (high - low) / 3;
    if (value(low + third) < value(high - third)) {
      low += third;
    } else {
      high -= third;
    }
  }
  return (low + high) / 2;
}

// Returns the limit of the possible drifts, between a possible drift and one that may be
// impossible.
double edge(double possible, double far, const ClockBounds& bounds) {
  if (bounds.room(far) >= 0) {
    return far;
  }
  for (int round = 0; round < kRounds; ++round) {
    const double middle = (possible + far) / 2;
    (bounds.room(middle) >= 0 ? possible : far) = middle;
  }
  return possible;
}

}  // namespace

std::optional<ClockLine> align_clocks(const std::vector<ClockBound>& at_most,
                                      const std::vector<ClockBound>& at_least) {
  if (at_most.empty() || at_least.empty()) {
    return std::nullopt;
  }
  const ClockBounds bounds(at_most, at_least);
  const auto room = [&bounds](double drift) { return bounds.room(drift); };
  const double drift = argmax(-kMostDrift, kMostDrift, room);
  if (bounds.room(drift) < 0) {
    return std::nullopt;
  }
  ClockLine line{.offset = (bounds.highest(drift) + bounds.lowest(drift)) / 2, .drift = drift};
  // The range of all possible lines is widest at the first or the last moment.
  const double low = edge(drift, -kMostDrift, bounds);
  const double high = edge(drift, kMostDrift, bounds);
  double first = std::numeric_limits<double>::infinity();
  double last = -first;
  for (const auto* side : {&at_most, &at_least}) {
    for (const ClockBound& bound : *side) {
      first = std::min(first, bound.time);
      last = std::max(last, bound.time);
    }
  }
  for (const double time : {first, last}) {
    const auto above = [&](double d) { return bounds.highest(d) + d * time; };
    const auto below = [&](double d) { return -(bounds.lowest(d) + d * time); };
    line.uncertainty = std::max({line.uncertainty, above(argmax(low, high, above)) - line.at(time),
                                 line.at(time) + below(argmax(low, high, below))});
  }
  return line;
}

}  // namespace unisono::trace
