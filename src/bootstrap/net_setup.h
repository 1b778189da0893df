// The pieces of a meeting over the network that the first meeting and the one after a failure have
// in common.
#pragma once

#include <memory>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/card.h"
#include "bootstrap/hosts.h"
#include "transport/tcp/socket.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// Where the ranks of a world listened while they met, for those that must meet again after a
// failure: by rank; and this one's sockets, which keep its ports.
struct Endpoints {
  std::vector<std::vector<tcp::Address>> addresses;
  std::vector<UniqueFd> sockets;
};

struct NetMeeting {
  Hosts hosts;
  bool oversubscribed = false;  // more ranks on this machine than CPUs that they may use
  int worlds = 0;  // how many the job has had before: the largest number that any of them knows
  tcp::Identity identity;
  std::unique_ptr<tcp::Acceptor> acceptor;           // where the ranks of other hosts connect
  std::vector<std::vector<tcp::Address>> addresses;  // by rank; none for those of this host
  Endpoints endpoints;
};

// What this rank says of itself to the others, but for the addresses at which it listens.
BusinessCard card_of(const ConnectOptions& options);

// One listening socket an address. An address without a port gets one of `ports`.
std::vector<UniqueFd> listen_at_all(const std::vector<tcp::Address>& addresses,
                                    const tcp::PortRange& ports);

// What this rank proves to its peers. `use` is appended to the name of the job, so that a proof
// for one use is of no worth in another.
tcp::Identity identity_of(const ConnectOptions& options, const char* use);

// The meeting that follows from the cards of all ranks.
NetMeeting settle(std::unique_ptr<tcp::Acceptor> acceptor, tcp::Identity identity,
                  const std::vector<BusinessCard>& cards, const BusinessCard& mine);

}  // namespace unisono::comm
