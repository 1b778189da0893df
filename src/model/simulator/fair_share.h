// Max-min fair rates of flows over links: no flow can have more without another, that has no more
// than it, having less. Found by filling all flows at the same speed until a link is full, fixing
// those on it, and so on (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2).
//
// Flows come and go; only those that share links with what changed, directly or over others, are
// looked at again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace unisono::model {

class FairShare {
 public:
  explicit FairShare(std::vector<double> capacities) : links_(capacities.size()) {
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      links_[i].capacity = capacities[i];
    }
  }

  // A flow over `links`, at least one; `flow` is a number of the caller's, small.
  // `links` must stay where they are until the flow is removed. Rates are right after settle().
  void add(int flow, std::span<const int> links);
  void remove(int flow);
  // Finds the rates again; returns the flows whose rate has changed, or that are new.
  const std::vector<int>& settle();
  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
  std::size_t users(int link) const { return links_[static_cast<std::size_t>(link)].flows.size(); }

 private:
  struct LinkState {
    double capacity = 0;
    std::vector<int> flows = {};
    double left = 0;         // while settling
    int open = 0;            // flows without a rate yet
    std::uint32_t seen = 0;  // the settling that has met it
  };
  struct Flow {
    std::span<const int> links;
    double rate = 0;
    double old_rate = 0;
    std::uint32_t seen = 0;
    bool fixed = false;
  };

  void collect(int link);
  void fill();
  void fix(int flow, double rate);

  std::vector<LinkState> links_;
  std::vector<Flow> flows_;
  std::vector<int> changed_links_;
  std::vector<int> near_links_;  // of the component at hand
  std::vector<int> near_flows_;
  std::vector<int> settled_;
  std::uint32_t settling_ = 0;
};

}  // namespace unisono::model
