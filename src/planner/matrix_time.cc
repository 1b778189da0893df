#include "planner/matrix_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace unisono::planner {
namespace {

// A tile that libraries choose from, and the share of the peak that it reaches.
struct Tile {
  double rows;
  double columns;
  double share;
};
constexpr std::array<Tile, 4> kTiles = {
    {{256, 128, 1.0}, {128, 128, 0.9}, {128, 64, 0.75}, {64, 64, 0.55}}};

}  // namespace

double matrix_s(const DeviceModel& device, Precision precision, const MatrixProduct& product) {
  if (product.flops() <= 0) {
    return 0;
  }
  const double peak = device.flops(precision);
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double tiles =
        std::ceil(product.m / tile.rows) * std::ceil(product.n / tile.columns) * product.count;
    const double waves = std::ceil(tiles / device.multiprocessors);
    const double flops = waves * device.multiprocessors * tile.rows * tile.columns * 2 * product.k;
    best = std::min(best, flops / (peak * tile.share));
  }
  const double input = weight_bytes(precision);
  const double bytes = product.count * (input * product.k * (product.m + product.n) +
                                        weight_bytes(Precision::bf16) * product.m * product.n);
  return std::max(best, bytes / device.memory_bytes_per_s);
}

double matrix_backward_s(const DeviceModel& device, Precision precision,
                         const MatrixProduct& product) {
  const MatrixProduct of_input{product.m, product.k, product.n, product.count};
  const MatrixProduct of_weights{product.k, product.n, product.m, product.count};
  return matrix_s(device, precision, of_input) + matrix_s(device, precision, of_weights);
}

}  // namespace unisono::planner
