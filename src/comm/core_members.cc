// Who belongs to a communicator: parts of one, and what is left of the world or joins it.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "bootstrap/host_memory.h"
#include "comm/connect.h"
#include "comm/core.h"
#include "comm/group.h"
#include "comm/group_segments.h"
#include "comm/shrink.h"
#include "diagnose/rosters.h"
#include "membership/watch.h"

namespace unisono::detail {
namespace {

struct Entry {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

// The ranks of one color, by key.
std::vector<int> in_order(const std::vector<Entry>& entries, int color) {
  std::vector<int> order;
  for (std::size_t rank = 0; rank < entries.size(); ++rank) {
    if (entries[rank].color == color) {
      order.push_back(static_cast<int>(rank));
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return entries[static_cast<std::size_t>(a)].key < entries[static_cast<std::size_t>(b)].key;
  });
  return order;
}

// A step that the others wait for: if this rank cannot do it, they hear of it.
template <typename Step>
void or_tell_all(comm::World& world, const Step& step) {
  try {
    step();
  } catch (const std::exception& error) {
    world.membership().abort().raise(error);
    world.membership().abort().throw_reason({.rank = world.rank()});
  }
}

}  // namespace

std::shared_ptr<Core> Core::shrink(const ShrinkOptions& options) {
  check_whole("shrink()");
  return of_world(comm::shrink(group_->world(), options.timeout_ms, options.quorum));
}

std::shared_ptr<Core> Core::grow(int size, const std::string& address) {
  check_whole("grow()");
  group_->world().check_usable();
  return of_world(comm::grow(group_->world(), size, address));
}

void Core::check_whole(const char* call) const {
  group_->world().check_process();
  if (group_->id() != 0) {
    throw Error(ErrorCode::usage,
                std::string(call) +
                    " on a part of the world\ncall it on the communicator that connect() gave, and "
                    "split the new one",
                {.rank = group_->world().rank()});
  }
}

std::shared_ptr<Core> Core::split(int color, int key) {
  std::shared_ptr<Core> part = split_off(color, key);
  if (part != nullptr) {
    part->take_helpers();
  }
  return part;
}

std::shared_ptr<Core> Core::split_off(int color, int key) {
  using Offer = comm::GroupSegments::Offer;
  comm::World& world = group_->world();
  const auto n = static_cast<std::size_t>(size());
  const Entry mine{.color = color, .key = key};
  std::vector<Entry> entries(n);
  run({.collective = Collective::all_gather,
       .in = &mine,
       .out = entries.data(),
       .count = sizeof(Entry)});
  ++splits_;
  const std::vector<int> order = in_order(entries, color);
  std::vector<int> members;
  int rank = 0;
  for (const int member : order) {
    if (member == group_->rank()) {
      rank = static_cast<int>(members.size());
    }
    members.push_back(group_->world_rank(member));
  }
  // On each host the first member there makes the segment.
  const comm::Hosts& hosts = world.hosts();
  const comm::GroupLayout layout(static_cast<int>(hosts.local_of(members).size()));
  const auto first = static_cast<std::size_t>(std::distance(
      members.begin(), std::find_if(members.begin(), members.end(),
                                    [&hosts](int member) { return hosts.is_here(member); })));
  Offer offer;
  std::shared_ptr<shm::Mapping> segment;
  const bool offers = color >= 0 && static_cast<std::size_t>(rank) == first;
  if (offers) {
    or_tell_all(world, [&] { offer = world.segments().offer(members, layout.bytes, segment); });
  }
  std::vector<Offer> all_offers(n);
  run({.collective = Collective::all_gather,
       .in = &offer,
       .out = all_offers.data(),
       .count = sizeof(offer)});
  if (color >= 0 && !offers) {
    or_tell_all(world, [&] {
      segment =
          world.segments().take(members[first], all_offers[static_cast<std::size_t>(order[first])]);
    });
  }
  run({.collective = Collective::barrier});  // the offers are taken
  if (color < 0) {
    return nullptr;
  }
  Hash id;
  id.add(group_->id()).add(splits_).add(static_cast<std::uint64_t>(color));
  return std::make_shared<Core>(this->world(), std::move(segment), std::move(members), rank,
                                id.value());
}

// As ranks of the world. `rank`: which of them this one is.
std::vector<int> Core::members_of_subgroup(std::span<const int> members, int& rank) const {
  const auto refuse = [this](const std::string& what) -> void {
    throw Error(ErrorCode::usage,
                "subgroup: " + what + "\nname different ranks of this group, with this one",
                {.rank = group_->world().rank()});
  };
  std::vector<int> ranks;
  rank = -1;
  for (const int member : members) {
    if (member < 0 || member >= size()) {
      refuse(std::to_string(member) + " is not a rank of " + std::to_string(size()));
    }
    const int global = group_->world_rank(member);
    if (std::find(ranks.begin(), ranks.end(), global) != ranks.end()) {
      refuse("rank " + std::to_string(member) + " is named twice");
    }
    if (member == group_->rank()) {
      rank = static_cast<int>(ranks.size());
    } else if (group_->world().membership().watch().same_process_as(global)) {
      throw Error(ErrorCode::usage,
                  "subgroup: ranks " + std::to_string(group_->rank()) + " and " +
                      std::to_string(member) +
                      " are threads of one process\nuse split(), which all ranks call",
                  {.rank = group_->world().rank()});
    }
    ranks.push_back(global);
  }
  if (rank < 0) {
    refuse("rank " + std::to_string(group_->rank()) + " is not among its members");
  }
  return ranks;
}

std::shared_ptr<Core> Core::subgroup(std::span<const int> members, std::uint64_t id) {
  comm::World& world = group_->world();
  world.check_usable();
  int rank = -1;
  std::vector<int> ranks = members_of_subgroup(members, rank);
  world.rosters().enter(group_->id(), id, ranks);
  Hash hash;
  hash.add("subgroup").add(group_->id()).add(id);
  for (const int member : ranks) {
    hash.add(static_cast<std::uint64_t>(member));
  }
  const comm::GroupLayout layout(static_cast<int>(world.hosts().local_of(ranks).size()));
  auto segment =
      world.segments().meet(ranks, layout.bytes, hash.value(), world.options().connect_timeout_ms);
  auto part = std::make_shared<Core>(this->world(), std::move(segment), std::move(ranks), rank,
                                     hash.value());
  part->take_helpers();
  return part;
}

}  // namespace unisono::detail
