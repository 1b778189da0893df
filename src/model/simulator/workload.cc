#include "model/simulator/workload.h"

#include "unisono/error.hpp"

namespace unisono::model {

WorkItem operation(const Algorithm& algorithm, Shape shape, double bytes, bool written_out) {
  shape = complete(algorithm, shape);
  const std::string name =
      std::string(to_string(algorithm.collective)) + "/" + full_name(algorithm, shape);
  if (!can_serve(algorithm, shape)) {
    throw Error(ErrorCode::usage, name + " cannot serve " + std::to_string(shape.ranks) +
                                      " ranks\nit takes only " + std::string(algorithm.limits));
  }
  WorkItem item{.name = name, .bytes = bytes};
  if (algorithm.compact != nullptr && !written_out) {
    item.compact = std::make_shared<const CompactSchedule>(algorithm.compact(shape));
    return item;
  }
  constexpr double kMostMessages = 2e7;
  const double messages = static_cast<double>(algorithm.steps(shape)) * shape.ranks;
  if (messages > kMostMessages) {
    throw Error(ErrorCode::usage,
                name + " on " + std::to_string(shape.ranks) +
                    " ranks has too many messages to simulate\ntake fewer ranks, or an algorithm "
                    "with a short form, such as ring or hierarchical");
  }
  item.schedule = std::make_shared<const Schedule>(build_schedule(algorithm, shape));
  return item;
}

}  // namespace unisono::model
