// The connections of one process to the ranks of other hosts over UCX: InfiniBand, RoCE and what
// else UCX knows, among it TCP and shared memory.
//
// Beside it stay the authenticated connections over TCP: UCX addresses are told over them, a peer
// that dies is noticed by them, and so do aborts travel. Messages go over UCX.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/network.h"
#include "transport/tcp/channel.h"

namespace unisono::ucx {

// Why there can be no network over UCX here; empty: there can.
std::string why_no_ucx();
// "1.13.1"; empty where there is none.
std::string version();
// The devices that UCX would use here, as it names them: "tcp/eth0", "rc_mlx5/mlx5_0:1". UCX_TLS
// and UCX_NET_DEVICES choose among them. Throws config.
std::vector<std::string> devices();

class UcxNetwork : public transport::Network {
 public:
  // Throws config where UCX is not there, and resource.
  static std::unique_ptr<UcxNetwork> create(int rank, int ranks,
                                            int silence_ms = transport::kSilenceMs);

  // What one peer must know to reach this rank, and must prove in each message: bytes.
  virtual std::string introduction(int peer) = 0;
  // Begins to connect with all peers that have channels: `introductions` by rank, of each what it
  // said to this rank; of one that hung up, nothing. Throws resource.
  virtual void meet(tcp::Channels channels, const std::vector<std::string>& introductions) = 0;
  // Goes on with it. Those that have not been heard over UCX yet.
  virtual std::vector<int> missing() = 0;
};

}  // namespace unisono::ucx
