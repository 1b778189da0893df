#include "membership/membership.h"

#include "bootstrap/local_host.h"
#include "bootstrap/net_setup.h"

namespace unisono::comm {

Membership::Membership(const Hosts& hosts, LocalHost& host, transport::Network* network, int rank,
                       const std::vector<int>& first_ranks)
    : abort_(host, network, rank, hosts.size()),
      watch_(hosts, host, network, abort_, first_ranks),
      agreement_(host.memory().data(), host.rank(), host.size()) {}

std::optional<Error> Membership::failure() {
  if (!abort_.is_set()) {
    watch_.look();
  }
  return abort_.failure();
}

}  // namespace unisono::comm
