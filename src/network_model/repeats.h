// Combines measurements of the same thing that were taken at different times.
//
// Whatever disturbs a measurement makes it longer: another program, a host that lends its cores to
// others, ranks that happen to meet on cores far apart. So the quickest one counts, which of all
// that could count repeats best. How far it may be off shows in how far the second one is from it:
// if delays are exponential, both are the mean delay over about the number of measurements.
#pragma once

#include <span>
#include <vector>

#include "cost/machine.h"

namespace unisono::network_model {

// The quickest point of each collective, algorithm, rank count and size, with its
// noise, in the order of these.
std::vector<cost::Point> quickest(std::span<const cost::Point> points);

// Returns the median time divided by the fastest one, as the median over everything that was
// measured at least three times; 1 if there is nothing. In the long run a program sees the median.
double median_over_quickest(std::span<const cost::Point> points);

// The median noise of the points with this rank count; 0 without points.
double typical_noise(std::span<const cost::Point> points, int ranks);

}  // namespace unisono::network_model
