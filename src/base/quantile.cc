#include "base/quantile.h"

#include <algorithm>
#include <utility>

#include "base/private.h"

namespace unisono {

double quantile(std::vector<double> values, double part) {
  if (values.empty()) {
    return 0;
  }
  std::ranges::sort(values);
  const double place = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

UNISONO_PRIVATE double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

}  // namespace unisono
