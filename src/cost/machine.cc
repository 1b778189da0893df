#include "cost/machine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "schedule/schedule.h"

namespace unisono::cost {
namespace {

// If neighbouring measured sizes differ by this factor or more, the trend of a library's times is
// unreliable between these sizes, because the library may switch protocols anywhere between them. A
// straight line has the least error there.
constexpr double kFarApart = 8;

// Time does not fall with size: between two measured sizes of the same series, limits the predicted
// time to the range of their times, give or take the measurement error.
double within_neighbours(const std::vector<Point>& points, const Point& asked) {
  constexpr double kSlack = 0.02;
  const Point* below = nullptr;
  const Point* above = nullptr;
  double least = HUGE_VAL;  // lower limit: the shortest time of the neighbours
  double most = 0;
  std::array<double, 2> sums = {};  // of times below and above, for their means
  std::array<double, 2> counts = {};
  bool is_measured = false;  // the residuals already weigh this measurement
  for (const Point& point : points) {
    if (point.ranks != asked.ranks || point.algorithm != asked.algorithm ||
        plain_form(point.collective) != plain_form(asked.collective)) {
      continue;
    }
    is_measured = is_measured || point.bytes == asked.bytes;
    if (point.bytes < asked.bytes && (below == nullptr || point.bytes > below->bytes)) {
      below = &point;
    }
    if (point.bytes > asked.bytes && (above == nullptr || point.bytes < above->bytes)) {
      above = &point;
    }
  }
  if (below == nullptr || above == nullptr || is_measured) {
    return asked.time_s;
  }
  for (const Point& point : points) {
    if (point.ranks == asked.ranks && point.algorithm == asked.algorithm &&
        plain_form(point.collective) == plain_form(asked.collective) &&
        (point.bytes == below->bytes || point.bytes == above->bytes)) {
      const double off = kSlack + point.noise;
      least = std::min(least, point.time_s * (1 - off));
      most = std::max(most, point.time_s * (1 + off));
      const std::size_t side = point.bytes == above->bytes ? 1 : 0;
      sums[side] += point.time_s;
      counts[side] += 1;
    }
  }
  if (asked.algorithm.empty() && above->bytes >= kFarApart * below->bytes) {
    const double part = (asked.bytes - below->bytes) / (above->bytes - below->bytes);
    return (1 - part) * sums[0] / counts[0] + part * sums[1] / counts[1];
  }
  return std::clamp(asked.time_s, std::max(least, 0.0), most);
}

}  // namespace

Work remembered_work(Machine::Group& group, const Point& point, bool one_collective) {
  const auto found = group.works.find(point.ranks);
  if (one_collective && found != group.works.end()) {
    return found->second;
  }
  const Work work = work_of(point.collective, point.algorithm, point.ranks);
  if (one_collective) {
    group.works[point.ranks] = work;
  }
  return work;
}

std::string Machine::group_of(Collective collective, const std::string& algorithm) {
  return algorithm.empty() ? "" : std::string(to_string(plain_form(collective))) + "/" + algorithm;
}

bool Machine::knows(Collective collective, const std::string& algorithm) const {
  return groups_.contains(group_of(collective, algorithm));
}

const Trend* Machine::trend(Collective collective, const std::string& algorithm) const {
  const auto found = groups_.find(group_of(collective, algorithm));
  return found == groups_.end() ? nullptr : &found->second.trend;
}

Machine Machine::restore(std::vector<Point> points, std::map<std::string, Group> groups) {
  Machine machine;
  machine.points_ = std::move(points);
  machine.groups_ = std::move(groups);
  for (const Point& point : machine.points_) {
    const auto found = machine.groups_.find(group_of(point.collective, point.algorithm));
    if (found != machine.groups_.end()) {
      remembered_work(found->second, point, !found->first.empty());
    }
  }
  return machine;
}

double Machine::time_s(Collective collective, const std::string& algorithm, int ranks,
                       double bytes) const {
  const Group& group = groups_.at(group_of(collective, algorithm));
  const auto work = group.works.find(ranks);
  const double trend = group.trend.time_s(
      work != group.works.end() ? work->second : work_of(collective, algorithm, ranks), ranks,
      bytes);
  const double expected =
      trend * std::exp(group.residuals.expected(plain_form(collective), ranks, bytes));
  return within_neighbours(points_, {.collective = collective,
                                     .algorithm = algorithm,
                                     .ranks = ranks,
                                     .bytes = bytes,
                                     .time_s = expected});
}

}  // namespace unisono::cost
