#include "experts/host_map.h"

namespace unisono::experts {

HostMap::HostMap(const Communicator& comm) : ranks_(static_cast<std::size_t>(comm.hosts())) {
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto host = static_cast<std::size_t>(comm.host(rank));
    host_.push_back(host);
    local_.push_back(static_cast<int>(ranks_[host].size()));
    ranks_[host].push_back(rank);
  }
  mine_ = host_[static_cast<std::size_t>(comm.rank())];
}

}  // namespace unisono::experts
