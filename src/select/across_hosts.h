// Chooses the fastest algorithm for a group with ranks on several hosts: each algorithm that can
// serve is simulated on a topology of these hosts.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "bootstrap/hosts.h"
#include "network_model/encoded_on.h"
#include "topology/topology.h"
#include "unisono/types.hpp"

namespace unisono::comm {

class AcrossHosts {
 public:
  // `members`: world ranks. If all of them are on one host there is nothing to choose.
  AcrossHosts(const Hosts& hosts, std::span<const int> members);

  bool several() const { return several_; }
  // The host of each rank of the group.
  const std::vector<int>& hosts() const { return host_of_; }
  // Returns the name with parameters, the same on all ranks. `bytes`: of the vector
  // (network_model/cost.h). Sizes up to the next power of two share one answer, which is simulated
  // once and takes some milliseconds. Empty: nothing could be simulated. `rank_order`: only
  // algorithms that sum in rank order.
  const std::string& choose(Collective collective, double bytes, bool rank_order = false);
  // Returns the fastest algorithm whose moves between hosts may be encoded according to the proof,
  // per root; nullptr: there is none. It lives as long as this object.
  const network_model::EncodedAlgorithm* choose_encoded(const network_model::EncodedCall& call,
                                                        double bytes);

 private:
  struct EncodedChoices {
    std::optional<std::vector<network_model::EncodedAlgorithm>> all;  // empty: not made yet
    std::map<int, const network_model::EncodedAlgorithm*>
        fastest;  // by the power of two of the size
  };
  const network_model::EncodedAlgorithm* find_fastest(
      const std::vector<network_model::EncodedAlgorithm>& all, double bytes) const;

  bool several_ = false;
  std::vector<int> host_of_;
  int ranks_;
  Topology topology_;
  std::map<std::tuple<Collective, int, bool>, std::string> chosen_;
  std::map<std::tuple<Collective, int, MoveCode>, EncodedChoices> encoded_;  // by root and code
};

}  // namespace unisono::comm
