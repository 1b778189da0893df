// A machine as its measurements show it: fitted once, asked for any collective, rank count and
// size.
//
// Measurements of one algorithm of the catalogue (as `unisono tune` takes them) and those of a
// library that chose itself (tables of nccl-tests) may be mixed. Each algorithm of a collective has
// a trend of its own (trend.h); so has the library's choice, one for all collectives, which is what
// answers for collectives that were not measured. What a trend leaves is interpolated
// (residuals.h).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "network_model/residuals.h"
#include "network_model/trend.h"
#include "unisono/types.hpp"

namespace unisono::network_model {

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
  // Throws Error(usage) if a point has no time above 0, no finite bytes, no rank, or an algorithm
  // that does not serve it.
  static Machine fit(std::vector<Point> points);

  // In the order in which they were given.
  const std::vector<Point>& points() const { return points_; }

  // Returns true if points of this algorithm were given.
  bool knows(Collective collective, const std::string& algorithm) const;
  // nullptr unless known.
  const Trend* trend(Collective collective, const std::string& algorithm) const;
  // A fitted group of points: "" for the library's choice, else "collective/algorithm".
  struct Group {
    Trend trend = {};
    Residuals residuals = {};
    std::map<int, Work> works = {};  // by rank count, of those that were measured
  };
  const std::map<std::string, Group>& groups() const { return groups_; }
  // As it was saved: nothing is fitted again.
  static Machine restore(std::vector<Point> points, std::map<std::string, Group> groups);

  // The time of a call, from the nearest of what is known. REQUIRES: knows(...). Throws
  // Error(usage) if the algorithm cannot serve `ranks`.
  double time_s(Collective collective, const std::string& algorithm, int ranks, double bytes) const;

 private:
  static std::string group_of(Collective collective, const std::string& algorithm);

  std::vector<Point> points_;
  std::map<std::string, Group> groups_;
};

}  // namespace unisono::network_model
