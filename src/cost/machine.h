// A machine as its measurements show it: asked for any collective, rank count and size.
//
// Measurements of one algorithm of the catalogue (as `unisono tune` takes them) and those of a
// library that chose itself (tables of nccl-tests) may be mixed. Each algorithm of a collective has
// a trend of its own (trend.h); so has the library's choice, one for all collectives, which is what
// answers for collectives that were not measured. What a trend leaves is interpolated
// (residuals.h).
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
  double noise = 0;  // how far the time may be off, in proportion; 0: not known
};

// The range of a point's values; beyond it, sums of fitted times overflow.
inline constexpr double kLeastPointUs = 1e-6;
inline constexpr double kMostPointUs = 1e15;
inline constexpr double kMostPointBytes = 1e18;

class Machine {
 public:
  // In the order in which they were given.
  const std::vector<Point>& points() const { return points_; }

  // Returns true if points of this algorithm were given.
  bool knows(Collective collective, const std::string& algorithm) const;
  // nullptr unless known.
  const Trend* trend(Collective collective, const std::string& algorithm) const;
  // The fitted values, by group of points.
  struct Group {
    Trend trend = {};
    Residuals residuals = {};
    std::map<int, Work> works = {};  // by rank count, of those that were measured
  };
  const std::map<std::string, Group>& groups() const { return groups_; }
  // "" for the library's choice, else "collective/algorithm".
  static std::string group_of(Collective collective, const std::string& algorithm);
  // As network_model/fit_machine.h has fitted it, or as it was saved.
  static Machine restore(std::vector<Point> points, std::map<std::string, Group> groups);

  // The time of a call, from the nearest of what is known. REQUIRES: knows(...). Throws
  // Error(usage) if the algorithm cannot serve `ranks`.
  double time_s(Collective collective, const std::string& algorithm, int ranks, double bytes) const;

 private:
  std::vector<Point> points_;
  std::map<std::string, Group> groups_;
};

// The work of a point of the group. Schedules may have to be built to know it, so a group of one
// collective keeps it. The group of the library's choice has several, whose work is quickly known.
Work remembered_work(Machine::Group& group, const Point& point, bool one_collective);

}  // namespace unisono::cost
