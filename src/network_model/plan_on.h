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
  std::vector<Row> rows = {};   // fastest first; equals in the order of the catalogue
  std::vector<Left> left = {};  // cannot serve, or have too many messages
  // An all_reduce in switches that reduce, where the topology has some; no schedule can use them.
  std::optional<InSwitch> in_switch = {};
};

struct OnTopologyOptions {
  double most_messages = 2e7;    // that share links: played in about a minute
  double gamma_us_per_byte = 0;  // to reduce
  // The number of independent messages that a rank has in transit at once.
  int at_once = 1;
  bool rank_order = false;  // only those that sum in the order of the ranks
  // Also with the moves between nodes encoded, where the proof allows it. REQUIRES then: a plain
  // collective with data.
  MoveCode code = MoveCode::none;
  std::set<std::string> only = {};  // these, by their names; empty: all
  std::function<void(const std::string&)> begins = [](const std::string&) {};  // with this one
};

// The call's ranks are the first of the topology. Each algorithm is tried as it is without
// parameters, with the nodes of the topology as its groups, and with more segments.
// REQUIRES: the topology has so many ranks.
OnTopology plan_on(const Call& call, const Topology& topology,
                   const OnTopologyOptions& options = {});

}  // namespace unisono::network_model
