// Connects a rank with its peers, once their addresses are known: it dials those of lower rank, and
// those of higher rank come to its gate.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "bootstrap/acceptor.h"
#include "bootstrap/relay.h"

namespace unisono::tcp {

struct MeetOptions {
  int timeout_ms = 60'000;
  SocketOptions socket = {};
  std::optional<Address> from = {};      // where to dial from; else as the kernel thinks
  std::optional<RelayPlace> relay = {};  // what to dial in place of the ranks
  // Asked about ten times a second whether to give up, with `aborted`.
  std::function<bool()> interrupted = nullptr;
};

// `addresses`: by rank, where its gate may be, tried in this order again and again; none for those
// that are not to be connected, and this one. Returns the streams by rank, as Connections wants
// them: encrypted, if the identity says so. Throws connection, naming those that are missing and
// why; config where there can be no TLS, or no token and not only this host.
Channels meet(Gate& gate, const Identity& self, const std::vector<std::vector<Address>>& addresses,
              const MeetOptions& options = {});

}  // namespace unisono::tcp
