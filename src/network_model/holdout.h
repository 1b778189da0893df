// Measures the error of a fit on measurements that it has not seen.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cost/machine.h"

namespace unisono::network_model {

// Predicted over measured, minus 1, for each predicted point.
struct Errors {
  std::vector<double> values;
  std::vector<cost::Point> points;

  void add(const Errors& more);
  std::size_t count() const { return values.size(); }
  // Returns a quantile of the absolute errors; 0 if there are none. `part` is 0.5 for the median.
  double quantile(double part) const;
  // Returns the point with the largest error. REQUIRES: count() > 0.
  std::size_t worst() const;
};

// Returns the errors at the points whose algorithm the machine knows.
Errors errors_of(const cost::Machine& machine, std::span<const cost::Point> points);

// Returns the prediction errors at the held-out points, for a model made from the other points.
using Predict = std::function<Errors(const std::vector<cost::Point>& seen,
                                     const std::vector<cost::Point>& held)>;
// Predicts with a machine fitted to the seen points.
Errors predict_by_machine(const std::vector<cost::Point>& seen,
                          const std::vector<cost::Point>& held);

// Predicts each half of the sizes of every series (collective, algorithm, ranks) from the other
// half. Series with one size are left out.
Errors hold_out_sizes(std::span<const cost::Point> points,
                      const Predict& predict = predict_by_machine);
// Predicts each rank count from all others; empty if there is only one.
Errors hold_out_ranks(std::span<const cost::Point> points,
                      const Predict& predict = predict_by_machine);
// Predicts each collective from all others; empty if there is only one.
Errors hold_out_collectives(std::span<const cost::Point> points,
                            const Predict& predict = predict_by_machine);

// Like hold_out_sizes, but with the plain curve, alpha + bytes/beta, through each series, as a
// baseline. Series with less than four sizes are left out.
Errors hold_out_sizes_of_plain_curve(std::span<const cost::Point> points);

}  // namespace unisono::network_model
