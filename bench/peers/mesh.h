// Connects the processes of a benchmark job over TCP. Each process writes its listening address to
// the job's directory.
#pragma once

#include <vector>

#include "peers/peer.h"
#include "transport/tcp/connections.h"

namespace unisono::bench {

// Connects all processes. This process listens on UNISONO_BENCH_HOST, or on the loopback interface.
tcp::Channels connect_mesh(const LaunchOptions& launch);

}  // namespace unisono::bench
