#include <algorithm>

#include "device/graph_draft.h"

namespace unisono::device {
namespace {

class GraphWriter {
 public:
  explicit GraphWriter(const GraphDraft& draft)
      : draft_(draft), graph_{.slots = draft.slots}, index_(draft.nodes.size(), -1) {}

  Graph run() {
    add_passes();
    add_messages();
    for (std::size_t n = 0; n < draft_.nodes.size(); ++n) {
      const GraphNode& node = draft_.nodes[n];
      if (node.pusher >= 0) {
        continue;
      }
      for (const int other : node.after) {
        add_wait(pass_of(static_cast<int>(n)).waits, node.rank, other);
      }
    }
    for (std::size_t rank = 0; rank < draft_.order.size(); ++rank) {
      for (const int other : draft_.touched[rank]) {
        add_wait(graph_.ranks[rank].exit, static_cast<int>(rank), other);
      }
    }
    return std::move(graph_);
  }

 private:
  void add_passes();
  void add_messages();
  // Adds a wait for another rank's pass. A rank runs its own passes in order, without waits.
  void add_wait(std::vector<After>& waits, int rank, int other);
  GraphPass& pass_of(int node) {
    return graph_.ranks[static_cast<std::size_t>(draft_.node(node).rank)]
        .passes[static_cast<std::size_t>(index_[static_cast<std::size_t>(node)])];
  }

  const GraphDraft& draft_;
  Graph graph_;
  std::vector<int> index_;  // per node: index among its rank's passes; -1: none
};

void GraphWriter::add_passes() {
  graph_.ranks.resize(draft_.order.size());
  for (std::size_t rank = 0; rank < draft_.order.size(); ++rank) {
    std::vector<GraphPass>& passes = graph_.ranks[rank].passes;
    for (const GraphAccess& access : draft_.order[rank]) {
      if (access.node >= 0 && draft_.node(access.node).pusher < 0) {
        index_[static_cast<std::size_t>(access.node)] = static_cast<int>(passes.size());
        passes.push_back(draft_.node(access.node).pass);
      }
    }
  }
}

void GraphWriter::add_messages() {
  for (const GraphMessage& message : draft_.messages) {
    if (message.push) {
      const std::vector<GraphCell>& targets = draft_.node(message.reader).pass.targets;
      std::vector<GraphCell>& all = pass_of(message.writer).targets;
      all.insert(all.end(), targets.begin(), targets.end());
    }
    ++(message.push ? graph_.pushed : message.stage ? graph_.staged : graph_.pulled);
  }
}

void GraphWriter::add_wait(std::vector<After>& waits, int rank, int other) {
  const int from = draft_.node(other).rank;
  if (from == rank) {
    return;
  }
  pass_of(other).signals |= std::uint64_t{1} << rank;
  const int passes = index_[static_cast<std::size_t>(other)] + 1;
  const auto known = std::find_if(waits.begin(), waits.end(),
                                  [&](const After& wait) { return wait.rank == from; });
  if (known == waits.end()) {
    waits.push_back({.rank = from, .passes = passes});
  } else {
    known->passes = std::max(known->passes, passes);
  }
}

}  // namespace

Graph write_graph(const GraphDraft& draft) {
  return GraphWriter(draft).run();
}

}  // namespace unisono::device
