// Chooses the fastest algorithm for a group with ranks on several hosts, by the cost of each usable
// algorithm (cost/hosts_time.h).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "bootstrap/hosts.h"
#include "cost/encoded.h"
#include "cost/hosts_time.h"
#include "unisono/types.hpp"

namespace unisono::comm {

class AcrossHosts {
 public:
  // `members`: world ranks. If all of them are on one host, choose() has nothing to compare.
  AcrossHosts(const Hosts& hosts, std::span<const int> members);

  bool several() const { return several_; }
  // The host of each rank of the group.
  const std::vector<int>& hosts() const { return host_of_; }
  // Returns the fastest algorithm with its parameters, the same on all ranks; empty if all
  // algorithms have too many messages. `bytes` is the size of the vector (cost/cost.h). All sizes
  // up to the next power of two share one answer; computing it for the first time takes some
  // milliseconds. With `rank_order`, considers only algorithms that sum in rank order.
  const std::string& choose(Collective collective, double bytes, bool rank_order = false);
  // Returns the fastest algorithm, per root, whose moves between hosts may be encoded according to
  // the proof; nullptr if there is none. The result lives as long as this object.
  const cost::EncodedAlgorithm* choose_encoded(const cost::EncodedCall& call, double bytes);

 private:
  struct EncodedChoices {
    std::optional<std::vector<cost::EncodedAlgorithm>> all;  // empty: not computed yet
    std::map<int, const cost::EncodedAlgorithm*> fastest;    // by the power of two of the size
  };
  std::string find_fastest(Collective collective, double bytes, bool rank_order) const;
  const cost::EncodedAlgorithm* find_fastest(const std::vector<cost::EncodedAlgorithm>& all,
                                             double bytes) const;

  bool several_ = false;
  std::vector<int> host_of_;
  std::optional<cost::HostsTime> time_;  // if there are several hosts
  std::map<std::tuple<Collective, int, bool>, std::string> chosen_;
  std::map<std::tuple<Collective, int, MoveCode>, EncodedChoices> encoded_;  // by root and code
};

}  // namespace unisono::comm
