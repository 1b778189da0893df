#include "bootstrap/connect_network.h"

#include "bootstrap/net.h"
#include "transport/tcp/connections.h"

namespace unisono::comm {

std::unique_ptr<transport::Network> connect_network(NetMeeting& meeting, int rank, int timeout_ms,
                                                    const std::function<bool()>& interrupted) {
  if (meeting.hosts.single()) {
    return nullptr;
  }
  return std::make_unique<tcp::Connections>(rank, connect_hosts(meeting, timeout_ms, interrupted));
}

}  // namespace unisono::comm
