// Rows that a dispatch sends between hosts. A token is sent once to every host that has one of its
// experts; a one-per-slot row is sent once, to the host of its expert.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "experts/host_map.h"
#include "experts/places.h"

namespace unisono::experts {

// Rows from one rank to one other host, in token order.
struct InterHostRows {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint32_t> choices;
};

struct InterHostLayout {
  std::vector<InterHostRows> leave;  // by host; rows to this host are not sent
  std::vector<InterHostIndex> come;  // by source rank: number of rows from it to this host
};

// Fills `leave`. Returns, for each of `send_layout.messages`, its index among the rows to its host.
std::vector<InterHostIndex> find_inter_host_rows(const HostMap& hosts, int k,
                                                 const SendLayout& send_layout, std::size_t choices,
                                                 InterHostLayout& inter_host);

}  // namespace unisono::experts
