// The hosts of an exchange's ranks, and the way of a row between hosts: it is sent once, to one
// rank there, from which the other ranks on that host read it.
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
  // By local number.
  std::span<const int> here() const noexcept { return ranks_[mine_]; }
  int local(int rank) const noexcept { return local_[static_cast<std::size_t>(rank)]; }
  // Returns the rank of `host` that receives the rows from `source`. The sources of one host are
  // spread over the ranks.
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
