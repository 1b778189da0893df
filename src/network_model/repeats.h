// Combines repeated measurements that were taken at different times.
//
// Disturbances only make a measurement longer: another program, a host that lends its cores to
// others, or ranks that happen to run on cores far apart. So the shortest time counts; it is also
// the time that repeats best. The gap to the second shortest time estimates the error of the
// shortest time: if delays are exponential, both are about the mean delay divided by the number of
// measurements.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"

namespace unisono::network_model {

// Returns the fastest point for each collective, algorithm, rank count and size, with its noise,
// sorted by these keys.
std::vector<cost::Point> quickest(std::span<const cost::Point> points);

// Returns the median time divided by the shortest one, as the median over everything that was
// measured at least three times; 1 if there is nothing. In the long run a program sees the median.
double median_over_quickest(std::span<const cost::Point> points);

// Returns the median noise of the points with this rank count; 0 without points.
double typical_noise(std::span<const cost::Point> points, int ranks);

}  // namespace unisono::network_model
