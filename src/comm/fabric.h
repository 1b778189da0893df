// What carries the messages of the groups of a world: shared memory to the ranks of this host, a
// network to the others. The one place of a communicator that names a transport.
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
  // All of these outlive it and its lanes. `network`: nullptr where there is one host.
  Fabric(const Hosts& hosts, const shm::ShmContext& host, transport::Network* network)
      : hosts_(hosts), host_(host), network_(network) {}

  enum class Use : std::uint8_t { collectives, transfers };
  struct Members {
    std::span<const int> ranks = {};  // of the world
    int rank = 0;                     // which of them this one is
    std::uint64_t id = 0;             // of the group
    std::byte* segment = nullptr;     // of those that are on this host
  };
  // Throws resource.
  std::unique_ptr<transport::Transport> lanes(const Members& members, Use use) const;

 private:
  const Hosts& hosts_;
  const shm::ShmContext& host_;
  transport::Network* network_;
};

}  // namespace unisono::comm
