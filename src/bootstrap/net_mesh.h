// Connects a rank to its peers once their addresses are known. The rank dials the ranks below it,
// and its acceptor takes connections from the ranks above it.
#pragma once

#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/dial.h"

namespace unisono::tcp {

// `addresses` has, per rank, the possible addresses of its acceptor, which are tried in this order
// again and again. The list is empty for this rank, and for each rank that needs no connection.
// Returns the streams by rank, as Connections needs them; they are encrypted if the identity says
// so. Errors:
//   connection   names the missing ranks and the reasons
//   peer_lost    names a dead rank (MeetOptions::all_listen) within half a second
//   resource     there is no free descriptor
//   config       TLS is impossible; or there is no token, and a rank is on another host
Channels meet(Acceptor& acceptor, const Identity& self,
              const std::vector<std::vector<Address>>& addresses, const MeetOptions& options = {});

}  // namespace unisono::tcp
