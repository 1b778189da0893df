// Maps an exchange's ranks to hosts, and chooses the route of rows between hosts: a row is sent
// once to one rank of the other host, and that host's other ranks read it there.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "unisono/communicator.hpp"

namespace unisono::experts {

class HostMap {
 public:
  explicit HostMap(const Communicator& comm);

  std::size_t count() const noexcept { return ranks_.size(); }
  bool single() const noexcept { return ranks_.size() == 1; }
  std::size_t host(int rank) const noexcept { return host_[static_cast<std::size_t>(rank)]; }
  std::size_t mine() const noexcept { return mine_; }
  bool is_here(int rank) const noexcept { return host(rank) == mine_; }
  // Returns the ranks on this host, by local number.
  std::span<const int> here() const noexcept { return ranks_[mine_]; }
  int local(int rank) const noexcept { return local_[static_cast<std::size_t>(rank)]; }
  // Returns the rank of `host` that receives the rows from `source`. The sources of a host are
  // spread over these ranks.
  int relay(int source, std::size_t host) const noexcept {
    const std::vector<int>& ranks = ranks_[host];
    return ranks[static_cast<std::size_t>(local(source)) % ranks.size()];
  }

 private:
  std::vector<std::size_t> host_;        // by rank
  std::vector<int> local_;               // by rank
  std::vector<std::vector<int>> ranks_;  // by host
  std::size_t mine_ = 0;
};

}  // namespace unisono::experts
