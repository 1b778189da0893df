// Max-min fair rates of flows over links: the rate of a flow can only grow at the cost of a flow
// whose rate is not higher. Found by raising all rates equally until a link is full, fixing the
// flows on that link, and so on (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2).
//
// When flows come and go, rates are computed again in one pass from the lowest rate up, which
// examines only links where something has changed. The link that limits a flow is its bottleneck. A
// flow keeps its rate, and its bottleneck need not be examined, until one of two things happens at
// a lower rate: another of the flow's links becomes full, or the flows of its bottleneck change.
// Everything below the current level of the pass is final, because flows with higher rates do not
// matter there.
//
// A link that could carry all of its flows at once, each with the rate of its narrowest link,
// limits none of them. A flow that uses only such links has the rate of its narrowest link, and no
// pass is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "network_model/simulator/simulation.h"

namespace unisono::network_model {

// The data of a link that every flow over it needs: one cache line.
struct alignas(64) SharedLink {
  double capacity = 0;
  double load = 0;  // sum of its flows' rates, each as if alone
  // Number of users. The first user is stored here, the others are in FairShare::others_.
  std::uint32_t users = 0;
  int first_flow = 0;
  double first_share = 0;
  double level = std::numeric_limits<double>::infinity();  // rate of the flows that it limits
  double since_us = 0;                                     // since when it has users
  double busy_us = 0;
  double bytes = 0;

  // The tolerance: rounding must not make a link oversubscribed whose flows just fill it.
  bool is_oversubscribed() const { return load > capacity * (1 + 1e-10); }
};
// The state of a link during a pass.
struct PassOfLink {
  double full_at = std::numeric_limits<double>::infinity();  // the level at which it becomes full
  std::uint32_t filled = 0;                                  // the last pass that filled it
  std::uint32_t last = 0;                                    // the last pass that examined it
  std::uint32_t version = 0;                                 // version of its turn
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

  // Starts a flow over `links`, at least one; `flow` is a small number chosen by the caller.
  // `shares` gives the flow's share on each link; empty: the whole flow on each. The links must
  // stay valid until the flow ends. Rates are correct after settle().
  void begin(int flow, std::span<const int> links, std::span<const double> shares = {},
             double now_us = 0);
  // Ends a flow after this many bytes.
  void end(int flow, double now_us = 0, double bytes = 0);
  // Computes the rates again; returns the flows that are new or whose rate changed.
  const std::vector<int>& settle();
  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }
  // Accounts for a transfer that had a link to itself for a while without being a flow.
  void pass_by(int link, double bytes, double busy_us);
  LinkUse use(int link) const;

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct User {
    int flow = 0;
    double share = 1;
  };
  enum class State : std::uint8_t { kept, open, fixed };  // kept: the rate has not changed
  // Kept small, because this is the most used type.
  struct Flow {
    double rate = 0;
    int bottleneck = -1;
    State state = State::kept;
    bool is_new = false;  // new, and on no oversubscribed link so far
  };
  struct Way {
    std::span<const int> links;
    std::span<const double> shares;
    double alone = 0;  // its rate if it were alone
    int narrowest = -1;
    double old_rate = 0;  // used while settling

    double share(std::size_t place) const { return shares.empty() ? 1 : shares[place]; }
  };
  // A link is examined when the pass reaches the level at which it is full, or was full before.
  struct Turn {
    double level = 0;
    int link = 0;
    std::uint32_t version = 0;

    bool operator<(const Turn& other) const {
      return level > other.level;
    }  // the lowest level is on top
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
  std::vector<std::vector<User>> others_;  // by link
  std::vector<PassOfLink> passes_;         // by link
  std::vector<Flow> flows_;
  std::vector<Way> ways_;     // by flow
  std::vector<int> touched_;  // links whose flows have changed
  std::vector<int> changed_;  // flows that are no longer kept
  std::vector<int> new_;      // flows whose state was `kept` when they started
  std::vector<Turn> queue_;   // a heap
  std::vector<int> settled_;
  std::uint32_t pass_ = 1;
  double level_ = 0;  // the current level of the pass
};

}  // namespace unisono::network_model
