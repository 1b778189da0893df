// Chooses the network for messages between hosts. The only place that does.
#pragma once

#include <functional>
#include <memory>

#include "bootstrap/net_setup.h"
#include "transport/network.h"

namespace unisono::comm {

// Connects this rank with ranks on other hosts, once the hosts of all ranks are known. Returns
// nullptr if all ranks are on this host. Errors: those of connect_hosts(). `tell` is called with a
// network of the connected ranks before this function fails because a rank is dead.
std::unique_ptr<transport::Network> connect_network(
    NetMeeting& meeting, int rank, int timeout_ms, const std::function<bool()>& interrupted,
    const std::function<void(transport::Network&, const Error&)>& tell);

}  // namespace unisono::comm
