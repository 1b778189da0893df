// Chooses the network for messages between hosts. No other file makes this choice.
#pragma once

#include <functional>
#include <memory>

#include "bootstrap/net_setup.h"
#include "transport/network.h"

namespace unisono::comm {

// Connects this rank to ranks on other hosts. REQUIRES: the hosts of all ranks are known. Returns
// nullptr if all ranks are on this host. Errors: those of connect_hosts(). If the function fails
// because a rank is dead, it first calls `tell` with a network of the connected ranks.
std::unique_ptr<transport::Network> connect_network(
    NetMeeting& meeting, int rank, int timeout_ms, const std::function<bool()>& interrupted,
    const std::function<void(transport::Network&, const Error&)>& tell);

}  // namespace unisono::comm
