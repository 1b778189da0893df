#include "comm/lanes.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/hash.h"
#include "bootstrap/host_memory.h"

namespace unisono::comm {
namespace {

// Of all ranks the same, as both ends of a lane must cut messages alike.
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

Lanes::Lanes(const Roads& roads, std::byte* segment, std::span<const int> members, int rank,
             std::uint64_t id, Use use) {
  const Hosts& hosts = *roads.hosts;
  const std::vector<int> local = hosts.local_of(members);
  const bool all_here = local.size() == members.size();
  const int me = members[static_cast<std::size_t>(rank)];
  const auto number_here = [&](int member) {
    return static_cast<int>(
        std::distance(local.begin(), std::find(local.begin(), local.end(), hosts.local(member))));
  };
  if (all_here || any_share_a_host(hosts, members)) {
    std::byte* const lanes = segment + GroupLayout(static_cast<int>(local.size())).lanes;
    here_ = std::make_unique<shm::ShmTransport>(*roads.host, lanes, local, number_here(me),
                                                use == Use::collectives ? 0 : 1);
    transport_ = here_.get();
  }
  if (all_here) {
    return;
  }
  const tcp::LaneKey key{.group = mix(id ^ (use == Use::collectives ? 0 : 1)),
                         .epoch = roads.epoch};
  across_ = std::make_unique<tcp::TcpTransport>(
      *roads.connections, key, std::vector<int>(members.begin(), members.end()), rank);
  transport_ = across_.get();
  if (here_ == nullptr) {
    return;
  }
  std::vector<transport::MixedTransport::Place> places;
  for (std::size_t member = 0; member < members.size(); ++member) {
    const bool here = hosts.is_here(members[member]);
    places.push_back(
        {.transport = here ? static_cast<transport::Transport*>(here_.get()) : across_.get(),
         .rank = here ? number_here(members[member]) : static_cast<int>(member)});
  }
  both_ = std::make_unique<transport::MixedTransport>(std::move(places), rank);
  transport_ = both_.get();
}

bool Lanes::reclaim() noexcept {
  const bool sent = across_ == nullptr || across_->flush(transport::kEveryLane);
  return (here_ == nullptr || here_->reclaim()) && sent;
}

void Lanes::leave_behind() noexcept {
  static_cast<void>(across_.release());  // NOLINT(bugprone-unused-return-value)
}

void Lanes::forsake() noexcept {
  if (across_ != nullptr) {
    across_->close();
  }
}

}  // namespace unisono::comm
