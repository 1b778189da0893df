// Estimates the time of a matrix product: that of its waves of tiles over all multiprocessors, or
// that of its bytes, whichever is longer.
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

// As the data sheet promises; the fitted constants are applied by the caller.
double matrix_s(const DeviceModel& device, Precision precision, const MatrixProduct& product);

// The time of the two products that the gradients of this one need.
double matrix_backward_s(const DeviceModel& device, Precision precision,
                         const MatrixProduct& product);

}  // namespace unisono::planner
