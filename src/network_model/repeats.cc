#include "network_model/repeats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

#include "base/quantile.h"

namespace unisono::network_model {
namespace {

using Key = std::tuple<Collective, std::string, int, double>;

// Returns the sorted times of each repeated measurement.
std::map<Key, std::vector<double>> repeats_of(std::span<const cost::Point> points) {
  std::map<Key, std::vector<double>> all;
  for (const cost::Point& point : points) {
    all[{point.collective, point.algorithm, point.ranks, point.bytes}].push_back(point.time_s);
  }
  for (auto& [key, times] : all) {
    std::sort(times.begin(), times.end());
  }
  return all;
}

// A single gap is one random draw, and often small by chance. The usual gap has this weight against
// it.
constexpr double kUsualCounts = 2;

// Returns the logarithm of the second shortest time over the shortest. REQUIRES: at least two
// times, sorted.
double gap(const std::vector<double>& times) {
  return std::log(times[1] / times[0]);
}

}  // namespace

std::vector<cost::Point> quickest(std::span<const cost::Point> points) {
  const std::map<Key, std::vector<double>> all = repeats_of(points);
  std::map<int, std::vector<double>> delays;  // by rank count
  for (const auto& [key, times] : all) {
    if (times.size() > 1) {
      delays[std::get<2>(key)].push_back(gap(times) * static_cast<double>(times.size() - 1));
    }
  }
  std::map<int, double> usual;
  for (const auto& [ranks, values] : delays) {
    usual[ranks] = median(values) / std::log(2.0);  // the mean, if exponential
  }
  std::vector<cost::Point> result;
  for (const auto& [key, times] : all) {
    const auto& [collective, algorithm, ranks, bytes] = key;
    double noise = usual[ranks] / static_cast<double>(times.size());
    if (times.size() > 1) {
      const double own = gap(times);
      noise = std::sqrt((own * own + kUsualCounts * noise * noise) / (1 + kUsualCounts));
    }
    result.push_back({.collective = collective,
                      .algorithm = algorithm,
                      .ranks = ranks,
                      .bytes = bytes,
                      .time_s = times.front(),
                      .noise = noise});
  }
  return result;
}

double median_over_quickest(std::span<const cost::Point> points) {
  constexpr std::size_t kLeast = 3;
  std::vector<double> ratios;
  for (const auto& [key, times] : repeats_of(points)) {
    if (times.size() >= kLeast && times.front() > 0) {
      ratios.push_back(median(times) / times.front());
    }
  }
  return ratios.empty() ? 1 : median(std::move(ratios));
}

double typical_noise(std::span<const cost::Point> points, int ranks) {
  std::vector<double> values;
  for (const cost::Point& point : points) {
    if (point.ranks == ranks) {
      values.push_back(point.noise);
    }
  }
  return median(std::move(values));
}

}  // namespace unisono::network_model
