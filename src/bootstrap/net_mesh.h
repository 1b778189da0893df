// Connects a rank with its peers once their addresses are known: it dials the ranks below it, and
// its acceptor takes the ranks above it.
#pragma once

#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/dial.h"

namespace unisono::tcp {

// `addresses`: by rank, the possible addresses of its acceptor, tried in this order again and
// again; empty for this rank and for ranks that are not to be connected. Returns the streams by
// rank, as Connections needs them, encrypted if the identity says so. Errors: connection, naming
// the missing ranks and why; peer_lost, naming a dead rank (MeetOptions::all_listen) within half a
// second; resource without a free descriptor; config if TLS is impossible, or if there is no token
// and not only this host.
Channels meet(Acceptor& acceptor, const Identity& self,
              const std::vector<std::vector<Address>>& addresses, const MeetOptions& options = {});

}  // namespace unisono::tcp
