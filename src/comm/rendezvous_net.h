// How the ranks of several hosts find each other: rank 0 listens at an address that all know; each
// other rank proves the token there and leaves its card; when all cards are in, everybody gets all
// of them: two messages a rank. Ranks that can talk already exchange their cards by that, without a
// lobby. Then the ranks of different hosts connect directly.
#pragma once

#include <memory>
#include <vector>

#include "comm/hosts.h"
#include "transport/tcp/gate.h"
#include "unisono/options.hpp"

namespace unisono::comm {

struct NetMeeting {
  Hosts hosts;
  bool crowded = false;  // more ranks on this machine than CPUs that they may use
  tcp::Identity identity;
  std::unique_ptr<tcp::Gate> gate;                   // where the ranks of other hosts connect
  std::vector<std::vector<tcp::Address>> addresses;  // by rank; none for those of this host
};

// Whether these options describe ranks that meet over the network. REQUIRES: resolve()d.
bool meets_over_network(const ConnectOptions& options);
// Blocks until all ranks are there. Errors: config (no token, an address that is none of this
// host), connection ("joined 6 of 8; missing ranks 3, 5", on all ranks).
NetMeeting meet_over_network(const ConnectOptions& options);
// The streams to the ranks of other hosts, by rank. The gate is closed afterwards.
tcp::Channels connect_hosts(NetMeeting& meeting, int timeout_ms);

}  // namespace unisono::comm
