#include "schedule/node_sum.h"

#include <algorithm>
#include <utility>

#include "schedule/tree_order.h"

namespace unisono {
namespace {

int root_of(std::span<const LeafRange> nodes) {
  for (std::size_t place = 0; place < nodes.size(); ++place) {
    if (nodes[place].first == 0) {
      return static_cast<int>(place);
    }
  }
  return 0;
}

}  // namespace

NodeSum sum_of_nodes(std::size_t leaves, std::span<const LeafRange> nodes) {
  NodeSum sum;
  ScheduleBuilder builder{
      Collective::reduce,
      {.ranks = std::max(static_cast<int>(nodes.size()), 1), .chunks = 1, .root = root_of(nodes)}};
  for (std::size_t place = 0; place < nodes.size(); ++place) {
    insert_node(sum.kept, {nodes[place], place}, leaves,
                [&](const NodeSum::Kept& lower, const NodeSum::Kept& upper) {
                  builder.step();
                  builder.move({.from = static_cast<int>(upper.place),
                                .to = static_cast<int>(lower.place),
                                .combine = Combine::reduce});
                });
  }
  sum.schedule = std::move(builder).build();
  sum.schedule.algorithm = kTreeOrder;
  return sum;
}

}  // namespace unisono
