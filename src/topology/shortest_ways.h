// All ways with the fewest links from one device to another: a search goes out from both ends until
// it meets, so devices under one switch cost the ports of that switch, whatever the size of the
// whole. No way passes through a device that has a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace unisono {

// Keeps a reference to the topology. One thread at a time uses it.
class ShortestWays {
 public:
  explicit ShortestWays(const Topology& topology);

  // Finds the ways; false if there are none. What follows is about those of the last call.
  // REQUIRES: the devices differ.
  bool find(int source, int target);

  // Links by which a way comes to `device` from the source. Among the ways that come to the
  // target only the widest count, but all that are as wide as `enough`: the rest of the route is no
  // wider.
  const std::vector<int>& before(int device, double enough);

  const LinksOut& out() const { return out_; }
  const LinksOut& in() const { return in_; }
  bool has_rank(int device) const { return has_rank_[static_cast<std::size_t>(device)]; }
  // The place of a link among those that leave the same device.
  int port(int link) const { return port_[static_cast<std::size_t>(link)]; }

 private:
  // The state of a device in one end of a search; valid if `search` is the current one.
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
  bool meet();
  void mark_paths(int source);
  int other_end(int link, bool backward) const;
  bool is_marked(int device) const {
    return marks_[static_cast<std::size_t>(device)].search == search_;
  }
  void mark(int device, int distance);
  void add_way(int link);

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
    int distance = 0;   // from the source
    double width = 0;   // of the widest shortest path from the source
    int last_way = -1;  // of the links on shortest paths that lead here: in `links_on_paths_`
  };
  struct Way {
    int link = 0;
    int before = -1;  // another one that leads to the same device
  };
  std::vector<Mark> marks_;
  std::vector<Way> links_on_paths_;
  std::vector<int> candidates_;
};

}  // namespace unisono
