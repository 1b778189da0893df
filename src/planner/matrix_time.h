// Estimates the time of a matrix product: the time of its waves of tiles over all multiprocessors,
// or the time of its bytes, whichever is longer.
#pragma once

#include "planner/device.h"

namespace unisono::planner {

// `count` products of [m, k] with [k, n].
struct MatrixProduct {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;

  double flops() const { return 2 * m * n * k * count; }
};

// According to the data sheet; the caller applies the fitted constants.
double matrix_s(const DeviceModel& device, Precision precision, const MatrixProduct& product);

// Returns the time of the two products that compute the gradients of this one.
double matrix_backward_s(const DeviceModel& device, Precision precision,
                         const MatrixProduct& product);

}  // namespace unisono::planner
