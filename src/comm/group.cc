#include "comm/group.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "bootstrap/local_host.h"
#include "transport/transport.h"

namespace unisono::comm {

Group::Group(std::shared_ptr<World> world, std::shared_ptr<shm::Mapping> segment,
             std::vector<int> members, int rank, std::uint64_t id)
    : world_(std::move(world)),
      segment_(std::move(segment)),
      memory_(segment_ == nullptr ? world_->host().memory().first_group() : segment_->data()),
      records_(world_->hosts(), std::move(members), rank, id, memory_, world_->remote_records()) {
  std::vector<int> here;
  std::copy_if(this->members().begin(), this->members().end(), std::back_inserter(here),
               [this](int member) { return world_->hosts().is_here(member); });
  introduce_group(memory_, here,
                  {.id = id,
                   .world = world_mark(world_->options().job),
                   .size = size(),
                   .first = this->members().front()});
}

int Group::hosts() const {
  std::set<int> hosts;
  for (const int member : members()) {
    hosts.insert(world_->hosts().host(member));
  }
  return static_cast<int>(hosts.size());
}

int Group::ranks_here_below(int end) const {
  const Hosts& hosts = world_->hosts();
  const int here = hosts.host(world_->rank());
  return static_cast<int>(std::count_if(members().begin(), members().begin() + end,
                                        [&](int member) { return hosts.host(member) == here; }));
}

int Group::host(int rank) const {
  const Hosts& hosts = world_->hosts();
  const int wanted = hosts.host(world_rank(rank));
  std::set<int> before;
  for (const int member : members()) {
    const int host = hosts.host(member);
    if (host == wanted) {
      break;
    }
    before.insert(host);
  }
  return static_cast<int>(before.size());
}

std::unique_ptr<transport::Transport> Group::make_lanes(Fabric::Use use) const {
  return world_->fabric().lanes(
      {.ranks = members(), .rank = rank(), .id = id(), .segment = memory_}, use);
}

trace::TraceWriter Group::make_writer() const {
  trace::Recorder* const recorder = world_->recorder();
  return recorder == nullptr ? trace::TraceWriter() : recorder->writer(id(), members());
}

}  // namespace unisono::comm
