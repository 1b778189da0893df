// Max-min fair rates of flows over links: a flow can only have more at the cost of one that has no
// more than it. Found by filling all flows at the same speed until a link is full, fixing
// those on it, and so on (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2).
//
// Flows come and go. Rates are then found again in one pass from the lowest level up, which looks
// only at links where something has changed. A flow keeps its rate, and the link that holds it back
// (its bottleneck) need not be looked at, until one of two things happens below that rate: another
// of its links gets full, or its bottleneck has other flows than before. What is below the level of
// the pass is final, since flows with more do not matter there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
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
  // which part of the flow goes over each link; empty: all of it. The links must stay where they
  // are until the flow is removed. Rates are right after settle().
  void add(int flow, std::span<const int> links, std::span<const double> shares = {});
  void remove(int flow);
  // Finds the rates again; returns the flows whose rate has changed, or that are new.
  const std::vector<int>& settle();
  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
  std::size_t users(int link) const { return links_[static_cast<std::size_t>(link)].users.size(); }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct User {
    int flow = 0;
    double share = 1;
  };
  struct LinkState {
    double capacity = 0;
    std::vector<User> users = {};
    double level = kNever;      // the rate of the flows that it holds back
    double full_at = kNever;    // while settling: the level at which it will be full
    std::uint32_t filled = 0;   // the pass that has filled it last
    std::uint32_t version = 0;  // of its turn
    bool touched = false;
  };
  enum class State : std::uint8_t { kept, open, fixed };  // kept: it has the rate from before
  // What is asked for most is short.
  struct Flow {
    double rate = 0;
    int bottleneck = -1;
    State state = State::kept;
  };
  struct Way {
    std::span<const int> links;
    double old_rate = 0;  // while settling
  };
  // A link is looked at when the pass reaches the level at which it is full, or at which it was.
  struct Turn {
    double level = 0;
    int link = 0;
    std::uint32_t version = 0;

    bool operator<(const Turn& other) const { return level > other.level; }  // the lowest on top
  };

  void touch(int flow);
  double level_when_full(int link) const;
  bool queue_touched();
  void raise();
  void fill(int link);
  void release(int link);
  void change(int flow, State state);

  std::vector<LinkState> links_;
  std::vector<Flow> flows_;
  std::vector<Way> ways_;     // of flows
  std::vector<int> touched_;  // links whose flows have changed
  std::vector<int> changed_;  // flows that are no longer kept
  std::vector<Turn> queue_;   // a heap
  std::vector<int> settled_;
  std::uint32_t pass_ = 1;
  double level_ = 0;  // that the pass has reached
};

}  // namespace unisono::model
