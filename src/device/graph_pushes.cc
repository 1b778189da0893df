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

// Pushes a message only if the sender knows without a signal that the receiver's cell may be
// written: every node that the receiver's pass must follow is on the sender, at or before the pass
// that forms the sum.
void choose_pushes(GraphDraft& draft) {
  const std::vector<int> position = positions(draft);
  for (GraphMessage& message : draft.messages) {
    if (message.writer < 0 || message.stage) {
      continue;
    }
    const GraphNode& reader = draft.node(message.reader);
    const GraphNode& writer = draft.node(message.writer);
    // A forwarded copy is not pushed: the receiver can read it where it arrived.
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
