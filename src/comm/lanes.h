// The lanes of one group: through shared memory to the ranks of this host, over the network to the
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "bootstrap/hosts.h"
#include "transport/mixed_transport.h"
#include "transport/shm/shm_transport.h"
#include "transport/tcp/tcp_transport.h"

namespace unisono::comm {

// What lanes of any group of a world are made from.
struct Roads {
  const Hosts* hosts = nullptr;
  const shm::ShmContext* host = nullptr;
  tcp::Connections* connections = nullptr;  // nullptr: there is one host
  std::uint32_t epoch = 0;
};

class Lanes {
 public:
  enum class Use : std::uint8_t { collectives, transfers };
  // `members`: ranks of the world, of which this one is number `rank`. `segment`: of those of them
  // that are on this host. `id`: the group's. Throws resource.
  Lanes(const Roads& roads, std::byte* segment, std::span<const int> members, int rank,
        std::uint64_t id, Use use);

  transport::Transport& get() noexcept { return *transport_; }
  // Takes back the memory that all readers are done with. True: nothing that was sent is left here.
  bool reclaim() noexcept;
  // After an abort: nothing of the users' memory is looked at any more.
  void forsake() noexcept;
  // In the child of a fork, where locks may be held by threads that are no more.
  void leave_behind() noexcept;

 private:
  std::unique_ptr<shm::ShmTransport> here_;
  std::unique_ptr<tcp::TcpTransport> across_;
  std::unique_ptr<transport::MixedTransport> both_;
  transport::Transport* transport_ = nullptr;
};

}  // namespace unisono::comm
