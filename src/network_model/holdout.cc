#include "network_model/holdout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/quantile.h"
#include "network_model/fit_machine.h"
#include "schedule/schedule.h"

namespace unisono::network_model {
namespace {

using Series = std::tuple<Collective, std::string, int>;

Series series_of(const cost::Point& point) {
  return {plain_form(point.collective), point.algorithm, point.ranks};
}

std::map<Series, std::vector<cost::Point>> by_series(std::span<const cost::Point> points) {
  std::map<Series, std::vector<cost::Point>> result;
  for (const cost::Point& point : points) {
    result[series_of(point)].push_back(point);
  }
  for (auto& [series, members] : result) {
    std::stable_sort(members.begin(), members.end(),
                     [](const cost::Point& a, const cost::Point& b) { return a.bytes < b.bytes; });
  }
  return result;
}

struct Split {
  std::vector<cost::Point> seen;
  std::vector<cost::Point> held;
};

template <typename IsHeld>
Split split(std::span<const cost::Point> points, const IsHeld& is_held) {
  Split result;
  for (const cost::Point& point : points) {
    (is_held(point) ? result.held : result.seen).push_back(point);
  }
  return result;
}

Errors try_on(const Split& split, const Predict& predict) {
  if (split.seen.empty() || split.held.empty()) {
    return {};
  }
  return predict(split.seen, split.held);
}

// Splits each series by the position of its sizes: odd positions and even positions.
Split every_second(const std::map<Series, std::vector<cost::Point>>& series, std::size_t held) {
  Split result;
  for (const auto& [key, points] : series) {
    const bool one_size = points.front().bytes == points.back().bytes;
    std::size_t place = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      place += i > 0 && points[i].bytes != points[i - 1].bytes ? 1U : 0U;
      const bool is_held = !one_size && place % 2 == held;
      (is_held ? result.held : result.seen).push_back(points[i]);
    }
  }
  return result;
}

// Fits alpha + bytes/beta with the least squares of relative errors, by two linear equations.
Errors plain_curve(const Split& split) {
  double ones = 0;
  double mixed = 0;
  double squares = 0;
  double left = 0;
  double right = 0;
  for (const cost::Point& point : split.seen) {
    const double a = 1 / point.time_s;
    const double b = point.bytes / point.time_s;
    ones += a * a;
    mixed += a * b;
    squares += b * b;
    left += a;
    right += b;
  }
  const double determinant = ones * squares - mixed * mixed;
  const double alpha = (left * squares - right * mixed) / determinant;
  const double slope = (right * ones - left * mixed) / determinant;
  Errors errors;
  for (const cost::Point& point : split.held) {
    errors.values.push_back((alpha + slope * point.bytes) / point.time_s - 1);
    errors.points.push_back(point);
  }
  return errors;
}

}  // namespace

void Errors::add(const Errors& more) {
  values.insert(values.end(), more.values.begin(), more.values.end());
  points.insert(points.end(), more.points.begin(), more.points.end());
}

double Errors::quantile(double part) const {
  std::vector<double> sizes;
  for (const double value : values) {
    sizes.push_back(std::abs(value));
  }
  return unisono::quantile(std::move(sizes), part);
}

std::size_t Errors::worst() const {
  const auto farthest = std::max_element(
      values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  return static_cast<std::size_t>(farthest - values.begin());
}

Errors errors_of(const cost::Machine& machine, std::span<const cost::Point> points) {
  Errors errors;
  for (const cost::Point& point : points) {
    if (machine.knows(point.collective, point.algorithm)) {
      const double time =
          machine.time_s(point.collective, point.algorithm, point.ranks, point.bytes);
      errors.values.push_back(time / point.time_s - 1);
      errors.points.push_back(point);
    }
  }
  return errors;
}

Errors predict_by_machine(const std::vector<cost::Point>& seen,
                          const std::vector<cost::Point>& held) {
  return errors_of(fit_machine(seen), held);
}

Errors hold_out_sizes(std::span<const cost::Point> points, const Predict& predict) {
  const auto series = by_series(points);
  Errors errors = try_on(every_second(series, 0), predict);
  errors.add(try_on(every_second(series, 1), predict));
  return errors;
}

Errors hold_out_ranks(std::span<const cost::Point> points, const Predict& predict) {
  std::set<int> counts;
  for (const cost::Point& point : points) {
    counts.insert(point.ranks);
  }
  Errors errors;
  for (const int ranks : counts) {
    errors.add(try_on(split(points, [&](const cost::Point& point) { return point.ranks == ranks; }),
                      predict));
  }
  return errors;
}

Errors hold_out_collectives(std::span<const cost::Point> points, const Predict& predict) {
  std::set<Collective> collectives;
  for (const cost::Point& point : points) {
    collectives.insert(plain_form(point.collective));
  }
  Errors errors;
  for (const Collective collective : collectives) {
    errors.add(try_on(
        split(points,
              [&](const cost::Point& point) { return plain_form(point.collective) == collective; }),
        predict));
  }
  return errors;
}

Errors hold_out_sizes_of_plain_curve(std::span<const cost::Point> points) {
  Errors errors;
  for (const auto& [key, members] : by_series(points)) {
    if (members.size() >= 4) {
      const std::map<Series, std::vector<cost::Point>> one = {{key, members}};
      errors.add(plain_curve(every_second(one, 0)));
      errors.add(plain_curve(every_second(one, 1)));
    }
  }
  return errors;
}

}  // namespace unisono::network_model
