// Finds the fastest algorithm on a topology by simulating each one that can serve a call.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/move_code.h"
#include "network_model/in_switch.h"
#include "network_model/plan.h"
#include "topology/topology.h"

namespace unisono::network_model {

struct OnTopology {
  struct Row {
    std::string name;  // with its parameters
    double time_s = 0;
    double messages = 0;
  };
  struct Left {
    std::string name;
    std::string why;
  };
  std::vector<Row> rows = {};   // fastest first; ties in catalogue order
  std::vector<Left> left = {};  // cannot serve the call, or have too many messages
  // An all_reduce inside switches that reduce, if the topology has some; schedules cannot use them.
  std::optional<InSwitch> in_switch = {};
};

struct OnTopologyOptions {
  double most_messages = 2e7;    // limit if links are shared: about a minute
  double gamma_us_per_byte = 0;  // to reduce
  // The number of independent messages that a rank has in transit at once.
  int at_once = 1;
  bool rank_order = false;  // only algorithms that sum in rank order
  // Also tries algorithms with encoded moves between nodes, if the proof allows it. This requires a
  // plain collective with data.
  MoveCode code = MoveCode::none;
  std::set<std::string> only = {};  // only algorithms of these names; empty: all
  // Called with the name of each algorithm before it is tried.
  std::function<void(const std::string&)> begins = [](const std::string&) {};
};

// The call's ranks are the first ranks of the topology. Tries each algorithm without parameters,
// with the topology's nodes as its groups, and with more segments. REQUIRES: the topology has this
// many ranks.
OnTopology plan_on(const Call& call, const Topology& topology,
                   const OnTopologyOptions& options = {});

}  // namespace unisono::network_model
