// Steps that the first connection over the network shares with the reconnection after a failure.
#pragma once

#include <memory>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/card.h"
#include "bootstrap/hosts.h"
#include "transport/tcp/socket.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// The addresses on which each rank of a world listened while the ranks connected, and this rank's
// sockets, which keep its ports. Needed to connect again after a failure.
struct Endpoints {
  std::vector<std::vector<tcp::Address>> addresses;
  std::vector<UniqueFd> sockets;
};

struct NetMeeting {
  Hosts hosts;
  bool oversubscribed = false;  // more ranks on this machine than CPUs for them
  int worlds = 0;  // number of earlier worlds of the job: the largest known to any rank
  tcp::Identity identity;
  std::unique_ptr<tcp::Acceptor> acceptor;           // for ranks on other hosts
  std::vector<std::vector<tcp::Address>> addresses;  // by rank; none for ranks on this host
  Endpoints endpoints;
};

// Returns this rank's card, without the addresses on which it listens.
BusinessCard card_of(const ConnectOptions& options);

// Opens one listening socket for each address. An address without a port gets one of `ports`.
std::vector<UniqueFd> listen_at_all(const std::vector<tcp::Address>& addresses,
                                    const tcp::PortRange& ports);

// Returns the identity that this rank proves to its peers. `use` becomes part of the job's name, so
// that a proof is valid for one use only.
tcp::Identity identity_of(const ConnectOptions& options, const char* use);

// Makes the meeting from the cards of all ranks.
NetMeeting settle(std::unique_ptr<tcp::Acceptor> acceptor, tcp::Identity identity,
                  const std::vector<BusinessCard>& cards, const BusinessCard& mine);

}  // namespace unisono::comm
