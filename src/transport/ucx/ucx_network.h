// The connections of one process to ranks on other hosts over UCX: InfiniBand, RoCE and UCX's other
// transports, among them TCP and shared memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/introduced_network.h"

namespace unisono::ucx {

// Returns why UCX is unavailable; empty: it is available.
std::string why_no_ucx();
// Returns the version, such as "1.13.1"; empty if UCX is unavailable.
std::string version();
// Returns the devices that UCX would use here, by UCX's names: "tcp/eth0", "rc_mlx5/mlx5_0:1".
// UCX_TLS and UCX_NET_DEVICES select them. Throws config.
std::vector<std::string> devices();

// Throws resource, and config if UCX is unavailable.
std::unique_ptr<transport::IntroducedNetwork> create(int rank, int ranks);

}  // namespace unisono::ucx
