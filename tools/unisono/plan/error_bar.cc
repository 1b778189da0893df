// The error of a fitted machine on calls like the requested one.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/collectives.h"
#include "network_model/holdout.h"
#include "plan/plan.h"

namespace unisono::cli {
namespace {

using cost::Point;
using network_model::Errors;

constexpr std::size_t kFewest = 3;  // a quantile of fewer rows is meaningless

Errors only(const Errors& all, const std::function<bool(const Point&)>& is_like) {
  Errors some;
  for (std::size_t i = 0; i < all.count(); ++i) {
    if (is_like(all.points[i])) {
      some.values.push_back(all.values[i]);
      some.points.push_back(all.points[i]);
    }
  }
  return some;
}

ErrorBar bar_of(const Errors& errors, std::string left_out) {
  if (errors.count() < kFewest) {
    return {};
  }
  return {.rows = errors.count(),
          .median = errors.quantile(0.5),
          .p90 = errors.quantile(0.9),
          .left_out = std::move(left_out)};
}

}  // namespace

ErrorBar error_bar(const std::vector<Point>& points, const network_model::Call& call) {
  const Collective collective = plain_form(call.collective);
  const auto is_same = [&](const Point& point) {
    return plain_form(point.collective) == collective;
  };
  const auto is_like = [&](const Point& point) {
    return is_same(point) && point.ranks == call.ranks;
  };
  if (std::ranges::any_of(points, is_like)) {
    return bar_of(only(network_model::hold_out_sizes(points), is_like), "size");
  }
  if (std::ranges::any_of(points, is_same)) {
    return bar_of(only(network_model::hold_out_ranks(points), is_same), "rank count");
  }
  return bar_of(network_model::hold_out_collectives(points), "collective");
}

}  // namespace unisono::cli
