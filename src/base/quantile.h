// The one meaning of a quantile: on the line between the nearest two of the values in rising order
// (type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996).
#pragma once

#include <vector>

namespace unisono {

// `part`: 0 for the least value, 1 for the largest. 0 without values.
double quantile(std::vector<double> values, double part);
double median(std::vector<double> values);

}  // namespace unisono
