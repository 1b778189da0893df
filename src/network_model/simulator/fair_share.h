// Max-min fair rates of flows over links: a flow can only have more at the cost of one that has no
// more than it. Found by filling all flows at the same speed until a link is full, fixing
// those on it, and so on (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2).
//
// Flows come and go. Rates are then found again in one pass from the lowest level up, which looks
// only at links where something has changed. A flow keeps its rate, and the link that holds it back
// (its bottleneck) need not be looked at, until one of two things happens below that rate: another
// of its links gets full, or its bottleneck has other flows than before. What is below the level of
// the pass is final, since flows with more do not matter there.
//
// A link that could carry all of its flows at once, each with what it has alone (that of its
// narrowest link), holds none of them back. As long as a flow meets only such links it has what it
// has alone, and no pass is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "network_model/simulator/simulation.h"

namespace unisono::network_model {

// The one line of the cache that a flow needs of each of its links.
struct alignas(64) SharedLink {
  double capacity = 0;
  double load = 0;  // of its flows, each with what it has alone
  // Its users: the first of them, the others are in FairShare::others_.
  std::uint32_t users = 0;
  int first_flow = 0;
  double first_share = 0;
  double level =
      std::numeric_limits<double>::infinity();  // the rate of the flows that it holds back
  double since_us = 0;                          // it has users
  double busy_us = 0;
  double bytes = 0;

  // Rounding does not make one so that its flows just fill.
  bool is_oversubscribed() const { return load > capacity * (1 + 1e-10); }
};
// The state of a link that only a pass uses.
struct PassOfLink {
  double full_at = std::numeric_limits<double>::infinity();  // the level at which it will be full
  std::uint32_t filled = 0;                                  // the pass that has filled it last
  std::uint32_t last = 0;                                    // the pass that has looked at it last
  std::uint32_t version = 0;                                 // of its turn
  bool touched = false;
};

class FairShare {
 public:
  explicit FairShare(const std::vector<double>& capacities)
      : links_(capacities.size()), others_(capacities.size()), passes_(capacities.size()) {
    for (std::size_t i = 0; i < capacities.size(); ++i) {
      links_[i].capacity = capacities[i];
    }
  }

  // A flow over `links`, at least one, that begins now; `flow` is a number of the caller's, small.
  // `shares` says which part of the flow goes over each link; empty: all of it. The links must stay
  // where they are until the flow ends. Rates are right after settle().
  void begin(int flow, std::span<const int> links, std::span<const double> shares = {},
             double now_us = 0);
  // Ends a flow after so many bytes.
  void end(int flow, double now_us = 0, double bytes = 0);
  // Finds the rates again; returns the flows whose rate has changed, or that are new.
  const std::vector<int>& settle();
  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
  // Accounts for a transfer that has a link to itself for a while, without being a flow.
  void pass_by(int link, double bytes, double busy_us);
  LinkUse use(int link) const;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct User {
    int flow = 0;
    double share = 1;
  };
  enum class State : std::uint8_t { kept, open, fixed };  // kept: it has the rate from before
  // Short, because it is used most.
  struct Flow {
    double rate = 0;
    int bottleneck = -1;
    State state = State::kept;
    bool is_new = false;  // and has met no oversubscribed link
  };
  struct Way {
    std::span<const int> links;
    std::span<const double> shares;
    double alone = 0;  // the rate
    int narrowest = -1;
    double old_rate = 0;  // while settling

    double share(std::size_t place) const { return shares.empty() ? 1 : shares[place]; }
  };
  // A link is looked at when the pass reaches the level at which it is full, or at which it was.
  struct Turn {
    double level = 0;
    int link = 0;
    std::uint32_t version = 0;

    bool operator<(const Turn& other) const { return level > other.level; }  // the lowest on top
  };

  void touch(int link);
  void touch_links(int flow);
  void find_narrowest(Way& way) const;
  void leave(int link, int flow, double now_us);
  template <typename Visit>
  void for_each_user(int link, const Visit& visit) const {
    const SharedLink& state = links_[static_cast<std::size_t>(link)];
    if (state.users > 0) {
      visit({.flow = state.first_flow, .share = state.first_share});
    }
    for (std::size_t i = 0; i + 1 < state.users; ++i) {
      visit(others_[static_cast<std::size_t>(link)][i]);
    }
  }
  double level_when_full(int link) const;
  bool queue_touched();
  void raise();
  void fill(int link);
  void release(int link);
  void change(int flow, State state);

  std::vector<SharedLink> links_;
  std::vector<std::vector<User>> others_;  // of links
  std::vector<PassOfLink> passes_;         // likewise
  std::vector<Flow> flows_;
  std::vector<Way> ways_;     // of flows
  std::vector<int> touched_;  // links whose flows have changed
  std::vector<int> changed_;  // flows that are no longer kept
  std::vector<int> new_;      // flows that were when they came
  std::vector<Turn> queue_;   // a heap
  std::vector<int> settled_;
  std::uint32_t pass_ = 1;
  double level_ = 0;  // that the pass has reached
};

}  // namespace unisono::network_model
