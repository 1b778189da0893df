// A graph under construction: the passes of all ranks as nodes, the messages between them, and the
// steps of build_graph().
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "device/graph.h"

namespace unisono::device {

struct GraphNode {
  int rank = 0;
  GraphPass pass = {};
  std::vector<int> after = {};                          // nodes
  int pusher = -1;                                      // node that does its work; -1: itself
  std::vector<std::pair<int, std::size_t>> lanes = {};  // message number, index among the sources
};

struct GraphMessage {
  int from = 0;
  GraphCell source = {};
  int reader = -1;  // node
  int writer = -1;  // node that forms the sum which the message carries
  int copy = -1;    // node, if it is staged
  bool push = false;
  bool stage = false;
};

// An access of a rank's program to the rank's cells.
struct GraphAccess {
  int node = -1;  // -1: a send
  int message = -1;
};

struct GraphDraft {
  int chunks = 0;
  int slots = 0;
  bool in_place = false;
  std::vector<GraphNode> nodes = {};
  std::vector<GraphMessage> messages = {};
  std::vector<std::vector<GraphAccess>> order = {};  // [rank]
  std::vector<std::vector<int>> touched = {};        // [rank]: foreign nodes that use its cells

  GraphNode& node(int number) { return nodes[static_cast<std::size_t>(number)]; }
  const GraphNode& node(int number) const { return nodes[static_cast<std::size_t>(number)]; }
  GraphMessage& message(int number) { return messages[static_cast<std::size_t>(number)]; }
  const GraphMessage& message(int number) const {
    return messages[static_cast<std::size_t>(number)];
  }
  // Returns a key that is equal for cells in the same memory.
  std::size_t key(const GraphCell& cell) const;
};

// Creates nodes, messages and order, without dependencies.
GraphDraft draft_graph(const Schedule& schedule, const GraphOptions& options);
// Determines the predecessors of each node and the nodes that use a rank's cells, given the current
// choice of pushed messages.
void connect_passes(GraphDraft& draft);
// Chooses the messages to push. REQUIRES: connect_passes().
void choose_pushes(GraphDraft& draft);
// Finds the passes that complete a sum. REQUIRES: connect_passes().
void find_sums(GraphDraft& draft);
Graph write_graph(const GraphDraft& draft);

// Visits the nodes that do their own work, each after its predecessors, and the nodes of each rank
// in program order. Returns false if nodes wait for each other in a cycle. REQUIRES:
// connect_passes().
bool visit_in_order(const GraphDraft& draft, const std::function<void(int node)>& visit);

}  // namespace unisono::device
