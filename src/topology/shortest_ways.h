// Finds all paths with the fewest links from one device to another. The search proceeds from both
// ends until they meet, so a search between devices under one switch costs the ports of that
// switch, whatever the size of the network. No path passes through a device with a rank.
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

  // Finds the paths; returns false if there are none. The functions below refer to the latest call.
  // REQUIRES: the devices differ.
  bool find(int source, int target);

  // Returns the links by which paths from the source reach `device`. Only the widest paths to the
  // target count, except that all paths at least as wide as `enough` count, because the rest of the
  // route is no wider.
  const std::vector<int>& before(int device, double enough);

  const LinksOut& out() const { return out_; }
  const LinksOut& in() const { return in_; }
  bool has_rank(int device) const { return has_rank_[static_cast<std::size_t>(device)]; }
  // Returns the index of a link among the links that leave the same device.
  int port(int link) const { return port_[static_cast<std::size_t>(link)]; }

 private:
  // The state of a device in one end of a search; valid only if `search` is the current one.
  struct Label {
    std::uint32_t search = 0;
    int distance = 0;
  };
  struct End {
    std::vector<Label> labels;
    std::vector<int> order;       // devices in the order in which they were reached
    std::vector<int> links;       // links on shortest paths to a device, in the same order
    std::size_t level_begin = 0;  // start of the outermost level in `order`
    std::size_t edges_ahead = 0;  // cost of the next level
  };

  void start(End& end, int device);
  // Advances to the next level; returns false if there is none.
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
  std::vector<int> port_;  // by link: its index among the links that leave the same device
  std::uint32_t search_ = 0;
  End forward_;
  End backward_;
  struct Mark {
    std::uint32_t search = 0;
    int distance = 0;   // from the source
    double width = 0;   // of the widest shortest path from the source
    int last_way = -1;  // last link on a shortest path to here: index in `links_on_paths_`
  };
  struct Way {
    int link = 0;
    int before = -1;  // the previous link that leads to the same device
  };
  std::vector<Mark> marks_;
  std::vector<Way> links_on_paths_;
  std::vector<int> candidates_;
};

}  // namespace unisono
