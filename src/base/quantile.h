// Quantiles, interpolated linearly between the two nearest sorted values (type 7 of Hyndman and
// Fan, "Sample Quantiles in Statistical Packages", 1996).
#pragma once

#include <vector>

namespace unisono {

// Returns 0 if there are no values. `part`: 0 selects the smallest value, 1 the largest.
double quantile(std::vector<double> values, double part);
double median(std::vector<double> values);

}  // namespace unisono
