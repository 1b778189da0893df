// A machine described by its measurements; it predicts the time of any collective, rank count and
// size.
//
// Measurements of single algorithms of the catalogue (as `unisono tune` takes them) may be mixed
// with measurements of a library that chose its algorithm itself (tables of nccl-tests). Each
// algorithm of a collective has its own trend (trend.h). The library's choice has one trend for all
// collectives, which also predicts collectives that were not measured. The deviations from a trend
// are interpolated (residuals.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cost/residuals.h"
#include "cost/trend.h"
#include "unisono/types.hpp"

namespace unisono::cost {

struct Point {
  Collective collective = Collective::barrier;
  std::string algorithm = {};  // "": the library's choice
  int ranks = 1;
  double bytes = 0;  // as in cost.h
  double time_s = 0;
  double noise = 0;  // relative error of the time; 0: unknown
};

// The range of a point's values; beyond it, sums of fitted times overflow.
inline constexpr double kLeastPointUs = 1e-6;
inline constexpr double kMostPointUs = 1e15;
inline constexpr double kMostPointBytes = 1e18;

class Machine {
 public:
  // The measurements, in their original order.
  const std::vector<Point>& points() const { return points_; }

  // Returns true if points of this algorithm were given.
  bool knows(Collective collective, const std::string& algorithm) const;
  // Returns nullptr unless knows() is true.
  const Trend* trend(Collective collective, const std::string& algorithm) const;
  // The fitted values of one group of points.
  struct Group {
    Trend trend = {};
    Residuals residuals = {};
    std::map<int, Work> works = {};  // by measured rank count
  };
  const std::map<std::string, Group>& groups() const { return groups_; }
  // Returns "" for the library's choice, else "collective/algorithm".
  static std::string group_of(Collective collective, const std::string& algorithm);
  // Restores a machine from saved groups, or from the groups that network_model/fit_machine.h has
  // fitted.
  static Machine restore(std::vector<Point> points, std::map<std::string, Group> groups);

  // Returns the time of a call, from the nearest measurements. REQUIRES: knows(...). Throws
  // Error(usage) if the algorithm cannot serve `ranks`.
  double time_s(Collective collective, const std::string& algorithm, int ranks, double bytes) const;

 private:
  std::vector<Point> points_;
  std::map<std::string, Group> groups_;
};

// Returns the work of a point of the group. It may have to build a schedule, so a group with one
// collective caches the result. The group of the library's choice has several collectives, whose
// work is quick to compute.
Work remembered_work(Machine::Group& group, const Point& point, bool one_collective);

}  // namespace unisono::cost
