#include "comm/derived.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <numeric>
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
#include "comm/helper_threads.h"
#include "comm/shrink.h"
#include "diagnose/rosters.h"
#include "membership/watch.h"

namespace unisono::detail {
namespace {

struct Entry {
  std::int32_t color = 0;
  std::int32_t key = 0;
};

// Returns the ranks of one color, ordered by key.
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

// Runs a step that other ranks wait for. If the step fails on this rank, notifies all ranks.
template <typename Step>
void or_tell_all(comm::World& world, const Step& step) {
  try {
    step();
  } catch (const std::exception& error) {
    world.membership().abort().raise(error);
    world.membership().abort().throw_reason({.rank = world.rank()});
  }
}

void check_whole(comm::Group& group, const char* call) {
  group.world().check_process();
  if (group.id() != 0) {
    throw Error(ErrorCode::usage,
                std::string(call) +
                    " on a part of the world\ncall it on the communicator that connect() returned, "
                    "and split the new one",
                {.rank = group.world().rank()});
  }
}

std::shared_ptr<Core> split_off(Core& core, int color, int key) {
  comm::Group& group = core.group();
  comm::World& world = group.world();
  const auto n = static_cast<std::size_t>(group.size());
  const Entry mine{.color = color, .key = key};
  std::vector<Entry> entries(n);
  core.run({.collective = Collective::all_gather,
            .in = &mine,
            .out = entries.data(),
            .count = sizeof(Entry)});
  const std::uint32_t number = group.count_split();
  const std::vector<int> order = in_order(entries, color);
  std::vector<int> members;
  int rank = 0;
  for (const int member : order) {
    if (member == group.rank()) {
      rank = static_cast<int>(members.size());
    }
    members.push_back(group.world_rank(member));
  }
  // On each host, the first member makes the segment.
  const comm::Hosts& hosts = world.hosts();
  const comm::GroupLayout layout(static_cast<int>(hosts.local_of(members).size()));
  const auto first = static_cast<std::size_t>(std::distance(
      members.begin(), std::find_if(members.begin(), members.end(),
                                    [&hosts](int member) { return hosts.is_here(member); })));
  std::uint64_t offer = 0;
  std::shared_ptr<shm::Mapping> segment;
  const bool offers = color >= 0 && static_cast<std::size_t>(rank) == first;
  if (offers) {
    or_tell_all(world, [&] { segment = world.segments().offer(members, layout.bytes, offer); });
  }
  std::vector<std::uint64_t> all_offers(n);
  core.run({.collective = Collective::all_gather,
            .in = &offer,
            .out = all_offers.data(),
            .count = sizeof(offer)});
  if (color >= 0 && !offers) {
    or_tell_all(world, [&] {
      segment =
          world.segments().take(members[first], all_offers[static_cast<std::size_t>(order[first])]);
    });
  }
  core.run({.collective = Collective::barrier});  // all members have taken the offers
  if (color < 0) {
    return nullptr;
  }
  Hash id;
  id.add(group.id()).add(number).add(static_cast<std::uint64_t>(color));
  return std::make_shared<Core>(group.shared_world(), std::move(segment), std::move(members), rank,
                                id.value());
}

// Makes groups for the helper threads, if the world has any. Collective.
void give_helpers(Core& core) {
  comm::HelperThreads* const threads = core.world()->helpers();
  if (threads == nullptr || core.size() == 1) {
    return;
  }
  std::vector<std::function<void(const Call&)>> helpers;
  for (int helper = 0; helper < threads->helpers(); ++helper) {
    helpers.emplace_back(
        [group = split_off(core, 0, core.rank())](const Call& slice) { group->run(slice); });
  }
  core.take_helpers(std::move(helpers));
}

// Returns `members` as world ranks. Sets `rank` to this rank's index among them.
std::vector<int> members_of_subgroup(comm::Group& group, std::span<const int> members, int& rank) {
  const auto refuse = [&group](const std::string& what) -> void {
    throw Error(ErrorCode::usage,
                "subgroup: " + what + "\ngive different ranks of this group, including this rank",
                {.rank = group.world().rank()});
  };
  std::vector<int> ranks;
  rank = -1;
  for (const int member : members) {
    if (member < 0 || member >= group.size()) {
      refuse(std::to_string(member) + " is not a rank of " + std::to_string(group.size()));
    }
    const int global = group.world_rank(member);
    if (std::find(ranks.begin(), ranks.end(), global) != ranks.end()) {
      refuse("rank " + std::to_string(member) + " is given twice");
    }
    if (member == group.rank()) {
      rank = static_cast<int>(ranks.size());
    } else if (group.world().membership().watch().same_process_as(global)) {
      throw Error(ErrorCode::usage,
                  "subgroup: ranks " + std::to_string(group.rank()) + " and " +
                      std::to_string(member) +
                      " are threads of one process\nuse split(), which all ranks call",
                  {.rank = group.world().rank()});
    }
    ranks.push_back(global);
  }
  if (rank < 0) {
    refuse("rank " + std::to_string(group.rank()) + " is not among its members");
  }
  return ranks;
}

}  // namespace

std::shared_ptr<Core> core_of_world(std::shared_ptr<comm::World> world) {
  std::vector<int> members(static_cast<std::size_t>(world->size()));
  std::iota(members.begin(), members.end(), 0);
  const int rank = world->rank();
  auto core = std::make_shared<Core>(std::move(world), nullptr, std::move(members), rank, 0);
  give_helpers(*core);
  return core;
}

std::shared_ptr<Core> shrink(Core& core, const ShrinkOptions& options) {
  check_whole(core.group(), "shrink()");
  return core_of_world(comm::shrink(core.group().world(), options.timeout_ms, options.quorum));
}

std::shared_ptr<Core> grow(Core& core, int size, const std::string& address) {
  check_whole(core.group(), "grow()");
  core.group().world().check_usable();
  return core_of_world(comm::grow(core.group().world(), size, address));
}

std::shared_ptr<Core> split(Core& core, int color, int key) {
  std::shared_ptr<Core> part = split_off(core, color, key);
  if (part != nullptr) {
    give_helpers(*part);
  }
  return part;
}

std::shared_ptr<Core> subgroup(Core& core, std::span<const int> members, std::uint64_t id) {
  comm::Group& group = core.group();
  comm::World& world = group.world();
  world.check_usable();
  int rank = -1;
  std::vector<int> ranks = members_of_subgroup(group, members, rank);
  std::shared_ptr<const void> claim = world.rosters().enter(group.id(), id, ranks);
  Hash hash;
  hash.add("subgroup").add(group.id()).add(id);
  for (const int member : ranks) {
    hash.add(static_cast<std::uint64_t>(member));
  }
  // An earlier group may have had the same id, but lanes between hosts need a number that was never
  // used before.
  hash.add(world.rosters().count_made(hash.value()));
  const comm::GroupLayout layout(static_cast<int>(world.hosts().local_of(ranks).size()));
  auto segment =
      world.segments().meet(ranks, layout.bytes, hash.value(), world.options().connect_timeout_ms);
  auto part = std::make_shared<Core>(group.shared_world(), std::move(segment), std::move(ranks),
                                     rank, hash.value());
  part->keep(std::move(claim));
  give_helpers(*part);
  return part;
}

}  // namespace unisono::detail
