#include "comm/fabric.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "bootstrap/host_memory.h"
#include "bootstrap/hosts.h"
#include "transport/mixed_transport.h"
#include "transport/network.h"
#include "transport/shm/shm_transport.h"

namespace unisono::comm {
namespace {

// Returns the same on all ranks, because both ends of a lane must cut messages in the same way.
bool any_share_a_host(const Hosts& hosts, std::span<const int> members) {
  std::vector<bool> seen(static_cast<std::size_t>(hosts.count()), false);
  return std::any_of(members.begin(), members.end(), [&](int member) {
    const auto host = static_cast<std::size_t>(hosts.host(member));
    const bool again = seen[host];
    seen[host] = true;
    return again;
  });
}

}  // namespace

std::unique_ptr<transport::Transport> Fabric::lanes(const Members& members, Use use) const {
  const int number_of_use = use == Use::collectives ? 0 : 1;
  const std::vector<int> local = hosts_.local_of(members.ranks);
  const auto number_here = [&](int member) {
    return static_cast<int>(
        std::distance(local.begin(), std::find(local.begin(), local.end(), hosts_.local(member))));
  };
  const bool all_here = local.size() == members.ranks.size();
  std::unique_ptr<transport::Transport> here;
  if (all_here || any_share_a_host(hosts_, members.ranks)) {
    here = std::make_unique<shm::ShmTransport>(
        host_, members.segment + GroupLayout(static_cast<int>(local.size())).lanes, local,
        number_here(members.ranks[static_cast<std::size_t>(members.rank)]), number_of_use);
  }
  if (all_here) {
    return here;
  }
  auto across = network_->lanes(mix(members.id ^ static_cast<std::uint64_t>(number_of_use)),
                                members.ranks, members.rank);
  if (here == nullptr) {
    return across;
  }
  std::vector<transport::MixedTransport::Place> places;
  for (std::size_t member = 0; member < members.ranks.size(); ++member) {
    const int rank = members.ranks[member];
    places.push_back(
        hosts_.is_here(rank)
            ? transport::MixedTransport::Place{here.get(), number_here(rank)}
            : transport::MixedTransport::Place{across.get(), static_cast<int>(member)});
  }
  std::vector<std::unique_ptr<transport::Transport>> both;
  both.push_back(std::move(here));
  both.push_back(std::move(across));
  return std::make_unique<transport::MixedTransport>(std::move(both), std::move(places),
                                                     members.rank);
}

}  // namespace unisono::comm
