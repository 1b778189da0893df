// What crosses from host to host in a dispatch: each token once to every host that has one of its
// experts, and a row of a slot once to the host of its expert.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/host_map.h"
#include "experts/places.h"

namespace unisono::experts {

// What one rank sends to one other host, in the order of its tokens.
struct CrossingRows {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint32_t> choices;
};

struct Crossings {
  std::vector<CrossingRows> leave;  // by host; those to this host are not sent
  std::vector<Crossing> come;       // by source rank: how many rows come from it to this host
};

// Fills `leave`. The result says of each of `leaving.told` which of the rows to its host it is.
std::vector<Crossing> find_crossings(const HostMap& hosts, int k, const Leaving& leaving,
                                     std::size_t choices, Crossings& crossings);

}  // namespace unisono::experts
