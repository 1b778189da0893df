// The transports of a world's groups: shared memory to ranks on this host, a network to all others.
// No other file of comm names a transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace unisono::shm {

struct ShmContext;

}  // namespace unisono::shm

namespace unisono::transport {

class Network;
class Transport;

}  // namespace unisono::transport

namespace unisono::comm {

class Hosts;

class Fabric {
 public:
  // All arguments must outlive this object and its lanes. `network` is nullptr if there is one
  // host.
  Fabric(const Hosts& hosts, const shm::ShmContext& host, transport::Network* network)
      : hosts_(hosts), host_(host), network_(network) {}

  enum class Use : std::uint8_t { collectives, transfers };
  struct Members {
    std::span<const int> ranks = {};  // world ranks
    int rank = 0;                     // this rank's index in `ranks`
    std::uint64_t id = 0;             // of the group
    std::byte* segment = nullptr;     // the segment shared by the members on this host
  };
  // Throws resource.
  std::unique_ptr<transport::Transport> lanes(const Members& members, Use use) const;

 private:
  const Hosts& hosts_;
  const shm::ShmContext& host_;
  transport::Network* network_;
};

}  // namespace unisono::comm
