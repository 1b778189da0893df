// The connections of one process to the ranks of other hosts over UCX: InfiniBand, RoCE and what
// else UCX knows, among it TCP and shared memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/introduced_network.h"

namespace unisono::ucx {

// Why there can be no network over UCX here; empty: there can.
std::string why_no_ucx();
// "1.13.1"; empty where there is none.
std::string version();
// The devices that UCX would use here, as it names them: "tcp/eth0", "rc_mlx5/mlx5_0:1". UCX_TLS
// and UCX_NET_DEVICES choose among them. Throws config.
std::vector<std::string> devices();

// Throws config where UCX is not there, and resource.
std::unique_ptr<transport::IntroducedNetwork> create(int rank, int ranks);

}  // namespace unisono::ucx
