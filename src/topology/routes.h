// Routes between ranks: shortest paths, found when asked for.
//
// A route has the fewest links; among those the widest (the largest bandwidth of its narrowest
// link). It passes through no device that has a rank. Where several remain, the choice depends on
// the destination alone, by the port that leads down to it at each switch, as in the static routing
// of fat trees (D-mod-k): ranks behind one switch that all send by the same distance share no link.
// The same pair has the same route every time.
//
// There is no table of all pairs: a search goes out from both ends until it meets, so a pair under
// one switch costs the ports of that switch, whatever the size of the whole.
//
// Zahavi et al., D-mod-k routing providing non-blocking traffic for shift permutations on real life
// fat trees, 2010.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace unisono {

// Keeps a reference to the topology. One thread at a time uses a router.
class Router {
 public:
  explicit Router(const Topology& topology);

  // The links from the device of one rank to that of another, in order; empty for from == to.
  // Errors: Error(usage) if no links lead there.
  const std::vector<int>& route(int from_rank, int to_rank);

 private:
  // What one end of a search knows of a device; valid if `search` is the current one.
  struct Label {
    std::uint32_t search = 0;
    int distance = 0;
  };
  struct End {
    std::vector<Label> labels;
    std::vector<int> order;       // devices as they were reached
    std::vector<int> links;       // those that lead to a device in the fewest steps, likewise
    std::size_t level_begin = 0;  // of the outermost level, in `order`
    std::size_t edges_ahead = 0;  // what the next level would cost
  };

  void start(End& end, int device);
  // Reaches the next level; false if there is none.
  bool advance(End& end, const LinksOut& links, bool backward, int target);
  bool is_labelled(const End& end, int device) const {
    return end.labels[static_cast<std::size_t>(device)].search == search_;
  }
  int meet();
  void mark_paths(int source);
  void walk_back(int source, int target);
  int other_end(int link, bool backward) const;
  bool is_marked(int device) const {
    return marks_[static_cast<std::size_t>(device)].search == search_;
  }
  void mark(int device, int distance);
  void widen(const Link& link);

  const Topology& topology_;
  LinksOut out_;
  LinksOut in_;
  std::vector<bool> has_rank_;
  std::vector<int> port_;  // of a link: its place among those that leave the same device
  std::uint32_t search_ = 0;
  End forward_;
  End backward_;
  struct Mark {
    std::uint32_t search = 0;
    int distance = 0;  // from the source
    double width = 0;  // of the widest shortest path from the source
  };
  std::vector<Mark> marks_;
  std::vector<int> candidates_;
  std::vector<int> route_;
};

}  // namespace unisono
