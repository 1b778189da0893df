// The one place that chooses what carries messages between hosts.
#pragma once

#include <functional>
#include <memory>

#include "bootstrap/net_setup.h"
#include "transport/network.h"

namespace unisono::comm {

// Connects this rank with those of other hosts, once all have settled who is where. nullptr: all
// are on this host. Errors: as connect_hosts(). `tell`: gets a network of those that are connected
// before it fails because a rank is dead.
std::unique_ptr<transport::Network> connect_network(
    NetMeeting& meeting, int rank, int timeout_ms, const std::function<bool()>& interrupted,
    const std::function<void(transport::Network&, const Error&)>& tell);

}  // namespace unisono::comm
