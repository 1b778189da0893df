#include <algorithm>

#include "device/graph_draft.h"

namespace unisono::device {
namespace {

// Returns the index of each node among its rank's passes.
std::vector<int> positions(const GraphDraft& draft) {
  std::vector<int> position(draft.nodes.size());
  for (const auto& order : draft.order) {
    int next = 0;
    for (const GraphAccess& access : order) {
      if (access.node >= 0) {
        position[static_cast<std::size_t>(access.node)] = next++;
      }
    }
  }
  return position;
}

}  // namespace

// The sender must know, without being told, that the receiver's pass may proceed: because it reads
// the cell itself in that very pass or in an earlier one.
void choose_pushes(GraphDraft& draft) {
  const std::vector<int> position = positions(draft);
  for (GraphMessage& message : draft.messages) {
    if (message.writer < 0 || message.stage) {
      continue;
    }
    const GraphNode& reader = draft.node(message.reader);
    const GraphNode& writer = draft.node(message.writer);
    // A copy that is forwarded can as well be read from where it arrived.
    const bool is_sum = writer.pass.sources.size() > 1;
    const bool is_copy = reader.pass.sources.size() == 1 && reader.pass.targets.size() == 1;
    message.push =
        is_sum && is_copy && std::all_of(reader.after.begin(), reader.after.end(), [&](int other) {
          return draft.node(other).rank == writer.rank &&
                 position[static_cast<std::size_t>(other)] <=
                     position[static_cast<std::size_t>(message.writer)];
        });
  }
}

}  // namespace unisono::device
