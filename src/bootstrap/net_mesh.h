// Connects a rank with its peers, once their addresses are known: it dials those of lower rank, and
// those of higher rank come to its acceptor.
#pragma once

#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/dial.h"

namespace unisono::tcp {

// `addresses`: by rank, where its acceptor may be, tried in this order again and again; none for
// those that are not to be connected, and this one. Returns the streams by rank, as Connections
// wants them: encrypted, if the identity says so. Throws connection, naming those that are missing
// and why; peer_lost, naming it, for one that is dead (MeetOptions::all_listen) within half a
// second; resource without a free descriptor; config where there can be no TLS, or no token and not
// only this host.
Channels meet(Acceptor& acceptor, const Identity& self,
              const std::vector<std::vector<Address>>& addresses, const MeetOptions& options = {});

}  // namespace unisono::tcp
