// Determines the predecessors of each pass: passes that wrote its sources, and passes that use the
// cells it overwrites.
#include <map>

#include "device/graph_draft.h"

namespace unisono::device {
namespace {

// Tracks the nodes that have used each cell of a rank so far.
class CellHistories {
 public:
  explicit CellHistories(GraphDraft& draft) : draft_(draft) {}

  void read(const GraphCell& source, int node) {
    History& history = cells_[draft_.key(source)];
    wait(node, history.writer);
    history.readers.push_back(node);
  }
  void write(const GraphCell& target, int node) {
    History& history = cells_[draft_.key(target)];
    wait(node, history.writer);
    for (const int reader : history.readers) {
      wait(node, reader);
    }
    history = {.writer = node};
  }
  void wait(int node, int other) {
    if (other >= 0 && other != node) {
      draft_.node(node).after.push_back(other);
    }
  }

 private:
  struct History {
    int writer = -1;
    std::vector<int> readers = {};
  };
  GraphDraft& draft_;
  std::map<std::size_t, History> cells_ = {};
};

void set_pushers(GraphDraft& draft) {
  for (GraphNode& node : draft.nodes) {
    node.after.clear();
    node.pusher = -1;
  }
  for (const GraphMessage& message : draft.messages) {
    if (message.push) {
      draft.node(message.reader).pusher = message.writer;
    }
  }
}

void connect_node(const GraphDraft& draft, int number, std::vector<int>& touched,
                  CellHistories& cells) {
  const GraphNode& node = draft.node(number);
  if (node.pusher < 0) {
    for (const GraphCell& source : node.pass.sources) {
      if (source.rank == node.rank) {
        cells.read(source, number);
      }
    }
  } else {
    touched.push_back(node.pusher);
  }
  for (const GraphCell& target : node.pass.targets) {
    cells.write(target, node.pusher < 0 ? number : node.pusher);
  }
}

void connect_rank(GraphDraft& draft, std::size_t rank) {
  CellHistories cells(draft);
  std::vector<int>& touched = draft.touched[rank];
  for (const GraphAccess& access : draft.order[rank]) {
    if (access.node >= 0) {
      connect_node(draft, access.node, touched, cells);
    } else if (const GraphMessage& message = draft.message(access.message); !message.push) {
      cells.read(message.source, message.reader);
      touched.push_back(message.reader);
    }
  }
  // No pass overwrites memory that holds staged data.
  for (const GraphMessage& message : draft.messages) {
    if (message.copy >= 0 && message.from == static_cast<int>(rank)) {
      cells.wait(message.reader, message.copy);
      touched.push_back(message.reader);
    }
  }
}

}  // namespace

void connect_passes(GraphDraft& draft) {
  set_pushers(draft);
  draft.touched.assign(draft.order.size(), {});
  for (std::size_t rank = 0; rank < draft.order.size(); ++rank) {
    connect_rank(draft, rank);
  }
}

}  // namespace unisono::device
