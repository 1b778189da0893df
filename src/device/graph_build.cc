#include <stdexcept>

#include "device/graph_draft.h"

namespace unisono::device {
namespace {

// Returns true if the passes can be ordered.
bool has_order(const GraphDraft& draft) {
  return visit_in_order(draft, [](int) {});
}

}  // namespace

Graph build_graph(const Schedule& schedule, const GraphOptions& options) {
  GraphDraft draft = draft_graph(schedule, options);
  connect_passes(draft);
  if (options.direct) {
    choose_pushes(draft);
    connect_passes(draft);
    if (!has_order(draft)) {
      for (GraphMessage& message : draft.messages) {
        message.push = false;
      }
      connect_passes(draft);
    }
  }
  if (!has_order(draft)) {
    throw std::logic_error("passes of " + schedule.algorithm + " wait for each other");
  }
  if (reduces(schedule.collective)) {
    find_sums(draft);
  }
  return write_graph(draft);
}

}  // namespace unisono::device
