// Connects the processes of a benchmark job over TCP: each leaves the address of its acceptor in
// the job's directory.
#pragma once

#include <vector>

#include "peers/peer.h"
#include "transport/tcp/connections.h"

namespace unisono::bench {

// The address that this process listens at: UNISONO_BENCH_HOST, or else the loopback device.
tcp::Channels connect_mesh(const LaunchOptions& launch);

}  // namespace unisono::bench
