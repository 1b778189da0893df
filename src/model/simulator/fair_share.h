// Max-min fair rates of flows over links: a flow can only have more at the cost of one that has no
// more than it. Found by filling all flows at the same speed until a link is full, fixing
// those on it, and so on (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2).
//
// Flows come and go. Rates are found again for those that a change touches, with all others as they
// are, and then for those as well for which that is no fair rate any more: a flow has one if one of
// its links is full, and no other flow there has more (its bottleneck).
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

  // A flow over `links`, at least one; `flow` is a number of the caller's, small. `shares` says
  // which part of the flow goes over each link; empty: all of it. Both must stay where they are
  // until the flow is removed. Rates are right after settle().
  void add(int flow, std::span<const int> links, std::span<const double> shares = {});
  void remove(int flow);
  // Finds the rates again; returns the flows whose rate has changed, or that are new.
  const std::vector<int>& settle();
  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
  std::size_t users(int link) const { return links_[static_cast<std::size_t>(link)].users.size(); }

 private:
  struct User {
    int flow = 0;
    double share = 1;
  };
  struct LinkState {
    double capacity = 0;
    std::vector<User> users = {};
    double left = 0;         // while settling
    double open = 0;         // shares of the flows without a rate yet
    int open_flows = 0;      // their number
    double level = 0;        // the rate of the flows that it holds back
    std::uint32_t seen = 0;  // the filling that has met it
  };
  struct Flow {
    std::span<const int> links;
    std::span<const double> shares;
    double rate = 0;
    double old_rate = 0;
    int bottleneck = -1;
    std::uint32_t asked = 0;  // the settling that finds its rate again
    bool fixed = false;

    double share(std::size_t link) const { return shares.empty() ? 1 : shares[link]; }
  };

  void ask(int flow);
  void meet_links();
  void fill();
  void fix(int flow, double rate, int bottleneck);
  bool ask_for_more();

  std::vector<LinkState> links_;
  std::vector<Flow> flows_;
  std::vector<int> changed_links_;  // that flows have left
  std::vector<int> asked_;          // flows whose rates are to be found
  std::vector<int> near_links_;     // of these flows
  std::vector<int> open_links_;     // of these, with flows that have no rate yet
  std::vector<int> settled_;
  std::uint32_t settling_ = 1;
  std::uint32_t filling_ = 0;
};

}  // namespace unisono::model
