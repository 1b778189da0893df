#include "device/graph_draft.h"

#include <algorithm>

namespace unisono::device {

std::size_t GraphDraft::key(const GraphCell& cell) const {
  // If the call is in place, input cells are output cells.
  const std::size_t kind = cell.place == engine::OperandPlace::scratch              ? 2
                           : cell.place == engine::OperandPlace::input && !in_place ? 1
                                                                                    : 0;
  const auto most = static_cast<std::size_t>(std::max(slots, chunks));
  return (static_cast<std::size_t>(cell.rank) * 3 + kind) * most +
         static_cast<std::size_t>(cell.index);
}

bool visit_in_order(const GraphDraft& draft, const std::function<void(int node)>& visit) {
  std::vector<std::size_t> next(draft.order.size());
  std::vector<bool> done(draft.nodes.size());
  const auto is_ready = [&](const GraphNode& node) {
    return std::all_of(node.after.begin(), node.after.end(),
                       [&](int other) { return done[static_cast<std::size_t>(other)]; });
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < draft.order.size(); ++rank) {
      for (; next[rank] < draft.order[rank].size(); ++next[rank], moved = true) {
        const int number = draft.order[rank][next[rank]].node;
        if (number < 0 || draft.node(number).pusher >= 0) {
          continue;
        }
        if (!is_ready(draft.node(number))) {
          break;
        }
        visit(number);
        done[static_cast<std::size_t>(number)] = true;
      }
    }
  }
  for (std::size_t rank = 0; rank < draft.order.size(); ++rank) {
    if (next[rank] != draft.order[rank].size()) {
      return false;
    }
  }
  return true;
}

}  // namespace unisono::device
