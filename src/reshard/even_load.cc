// Dinkelbach's method: raises the limit of bytes per rank until all loads fit. If they do not fit,
// the minimum cut of the flow from loads to ranks identifies a set of ranks with too much to send,
// and their average load is the next limit. Dinic's algorithm computes the flow.
#include "reshard/even_load.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <queue>

namespace unisono::parallel {
namespace {

class Flow {
 public:
  explicit Flow(std::size_t nodes) : edges_(nodes), level_(nodes), next_(nodes) {}

  void connect(std::size_t from, std::size_t to, std::uint64_t room) {
    edges_[from].push_back({.to = to, .back = edges_[to].size(), .room = room});
    edges_[to].push_back({.to = from, .back = edges_[from].size() - 1, .room = 0});
  }

  std::uint64_t run(std::size_t source, std::size_t sink) {
    std::uint64_t sum = 0;
    while (find_levels(source, sink)) {
      std::fill(next_.begin(), next_.end(), 0);
      while (const std::uint64_t more =
                 push(source, sink, std::numeric_limits<std::uint64_t>::max())) {
        sum += more;
      }
    }
    return sum;
  }

  // Returns true if the node is on the source's side of the minimum cut. REQUIRES: run().
  bool is_reached(std::size_t node) const { return level_[node] >= 0; }

 private:
  struct Edge {
    std::size_t to = 0;
    std::size_t back = 0;
    std::uint64_t room = 0;
  };

  bool find_levels(std::size_t source, std::size_t sink) {
    std::fill(level_.begin(), level_.end(), -1);
    level_[source] = 0;
    std::queue<std::size_t> open({source});
    for (; !open.empty(); open.pop()) {
      for (const Edge& edge : edges_[open.front()]) {
        if (edge.room > 0 && level_[edge.to] < 0) {
          level_[edge.to] = level_[open.front()] + 1;
          open.push(edge.to);
        }
      }
    }
    return level_[sink] >= 0;
  }

  // The recursion depth is the length of a path through loads and ranks.
  std::uint64_t push(std::size_t node, std::size_t sink, std::uint64_t most) {  // NOLINT
    if (node == sink) {
      return most;
    }
    for (; next_[node] < edges_[node].size(); ++next_[node]) {
      Edge& edge = edges_[node][next_[node]];
      if (edge.room == 0 || level_[edge.to] != level_[node] + 1) {
        continue;
      }
      if (const std::uint64_t more = push(edge.to, sink, std::min(most, edge.room))) {
        edge.room -= more;
        edges_[edge.to][edge.back].room += more;
        return more;
      }
    }
    return 0;
  }

  std::vector<std::vector<Edge>> edges_;
  std::vector<int> level_;
  std::vector<std::size_t> next_;  // per node: next edge to try
};

}  // namespace

std::uint64_t least_busiest(const Loads& loads) {
  std::map<int, std::size_t> ranks;  // their nodes follow the nodes of the loads
  std::uint64_t sum = 0;
  for (const auto& [senders, bytes] : loads) {
    if (senders.empty()) {
      continue;  // no rank can send these bytes
    }
    sum += bytes;
    for (const int rank : senders) {
      ranks.try_emplace(rank, 2 + loads.size() + ranks.size());
    }
  }
  if (sum == 0 || ranks.empty()) {
    return 0;
  }
  constexpr std::size_t kSource = 0;
  constexpr std::size_t kSink = 1;
  for (std::uint64_t least = (sum - 1) / ranks.size() + 1;;) {
    Flow flow(2 + loads.size() + ranks.size());
    std::size_t node = 2;
    for (const auto& [senders, bytes] : loads) {
      if (!senders.empty()) {
        flow.connect(kSource, node, bytes);
      }
      for (const int rank : senders) {
        flow.connect(node, ranks.at(rank), bytes);
      }
      ++node;
    }
    for (const auto& [rank, place] : ranks) {
      flow.connect(place, kSink, least);
    }
    if (flow.run(kSource, kSink) == sum) {
      return least;
    }
    std::uint64_t stuck = 0;
    std::uint64_t count = 0;
    node = 2;
    for (const auto& load : loads) {
      stuck += flow.is_reached(node++) ? load.second : 0;
    }
    for (const auto& [rank, place] : ranks) {
      count += flow.is_reached(place) ? 1U : 0U;
    }
    least = (stuck - 1) / count + 1;
  }
}

}  // namespace unisono::parallel
