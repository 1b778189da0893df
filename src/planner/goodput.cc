#include "planner/goodput.h"

#include <algorithm>
#include <cmath>

namespace unisono::planner {
namespace {

// Returns Daly's estimate of the interval, for checkpoints that are short compared with the time
// between failures.
double best_interval(double checkpoint_s, double failure_every_s) {
  if (checkpoint_s >= 2 * failure_every_s) {
    return failure_every_s;
  }
  const double ratio = checkpoint_s / (2 * failure_every_s);
  return std::sqrt(2 * checkpoint_s * failure_every_s) * (1 + std::sqrt(ratio) / 3 + ratio / 9) -
         checkpoint_s;
}

}  // namespace

Goodput goodput_of(const ModelShape& shape, const TrainingTask& task, int devices,
                   const FailureRates& rates) {
  constexpr double kWeight = 2;
  constexpr double kMaster = 4;
  Goodput result;
  result.failure_every_s = rates.device_mtbf_s / devices;
  result.checkpoint_bytes =
      total_weights(shape) * (kWeight + kMaster + 2 * weight_bytes_of(task.moments));
  result.checkpoint_s = result.checkpoint_bytes / rates.storage_bytes_per_s;
  result.checkpoint_every_s = best_interval(result.checkpoint_s, result.failure_every_s);
  // An interval of work and its checkpoint repeats until no failure occurs in it (Daly's equation
  // 20); each failure costs a restart.
  const double attempt = result.checkpoint_every_s + result.checkpoint_s;
  const double expected = result.failure_every_s *
                          std::exp(rates.restart_s / result.failure_every_s) *
                          std::expm1(attempt / result.failure_every_s);
  result.share =
      std::isfinite(expected) ? std::clamp(result.checkpoint_every_s / expected, 0.0, 1.0) : 0;
  return result;
}

}  // namespace unisono::planner
