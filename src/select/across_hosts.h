// Which algorithm is fastest for a group whose ranks are on several hosts: each that can serve is
// simulated on a topology of these hosts.
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
  // `members`: ranks of the world. With all of them on one host there is nothing to choose.
  AcrossHosts(const Hosts& hosts, std::span<const int> members);

  bool several() const { return several_; }
  // The host of each rank of the group.
  const std::vector<int>& hosts() const { return host_of_; }
  // With its parameters; of all ranks the same. `bytes`: of the vector (model/cost.h). Sizes up to
  // the next power of two have one answer, which is simulated once: some milliseconds. Empty:
  // nothing could be simulated. `rank_order`: of those that sum in the order of the ranks.
  const std::string& choose(Collective collective, double bytes, bool rank_order = false);
  // The fastest of those that the proof lets be encoded between the hosts, likewise for each root;
  // nullptr: there is none. It lives as long as this.
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
