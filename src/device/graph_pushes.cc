#include <algorithm>

#include "device/graph_draft.h"

namespace unisono::device {
namespace {

// Which of its rank's passes each node is.
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

// What a pass of the receiver's waits for must be known to the sender without being told: that it
// reads the cell itself in that very pass, or in one before.
void choose_pushes(GraphDraft& draft) {
  const std::vector<int> position = positions(draft);
  for (GraphMessage& message : draft.messages) {
    if (message.writer < 0 || message.stage) {
      continue;
    }
    const GraphNode& reader = draft.node(message.reader);
    const GraphNode& writer = draft.node(message.writer);
    // A copy that is passed on is as well read where it came to.
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
