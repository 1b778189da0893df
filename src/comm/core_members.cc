// Who belongs to a communicator: parts of one, and what is left of the world or joins it.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "comm/core.h"

namespace unisono::detail {

std::shared_ptr<Core> Core::shrink(const ShrinkOptions& options) {
  check_whole("shrink()");
  return of_world(world_->shrink(options.timeout_ms, options.quorum));
}

std::shared_ptr<Core> Core::grow(int size, const std::string& address) {
  check_whole("grow()");
  check_usable();
  return of_world(world_->grow(size, address));
}

void Core::check_whole(const char* call) const {
  if (!world_->same_process()) {
    check_usable();
  }
  if (id_ != 0) {
    throw Error(ErrorCode::usage,
                std::string(call) +
                    " on a part of the world\ncall it on the communicator that connect() gave, and "
                    "split the new one",
                {.rank = world_->rank()});
  }
}

std::shared_ptr<Core> Core::split(int color, int key) {
  struct Entry {
    std::int32_t color;
    std::int32_t key;
  };
  const auto n = static_cast<std::size_t>(size());
  const Entry mine{.color = color, .key = key};
  std::vector<Entry> entries(n);
  run({.collective = Collective::all_gather,
       .in = &mine,
       .out = entries.data(),
       .count = sizeof(Entry)});
  ++splits_;
  std::vector<int> order;
  for (int rank = 0; rank < size(); ++rank) {
    if (entries[static_cast<std::size_t>(rank)].color == color) {
      order.push_back(rank);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return entries[static_cast<std::size_t>(a)].key < entries[static_cast<std::size_t>(b)].key;
  });
  std::vector<int> members;
  int rank = 0;
  for (const int member : order) {
    if (member == rank_) {
      rank = static_cast<int>(members.size());
    }
    members.push_back(members_[static_cast<std::size_t>(member)]);
  }
  // On each host the first member there makes the segment.
  const comm::Hosts& hosts = world_->hosts();
  const comm::GroupLayout layout(static_cast<int>(hosts.local_of(members).size()));
  const auto first = static_cast<std::size_t>(std::distance(
      members.begin(), std::find_if(members.begin(), members.end(),
                                    [&hosts](int member) { return hosts.is_here(member); })));
  comm::World::SegmentOffer offer;
  std::shared_ptr<shm::Mapping> segment;
  const bool offers = color >= 0 && static_cast<std::size_t>(rank) == first;
  if (offers) {
    or_tell_all([&] { offer = world_->offer_segment(members, layout.bytes, segment); });
  }
  std::vector<comm::World::SegmentOffer> all_offers(n);
  run({.collective = Collective::all_gather,
       .in = &offer,
       .out = all_offers.data(),
       .count = sizeof(offer)});
  if (color >= 0 && !offers) {
    or_tell_all([&] {
      segment =
          world_->take_segment(members[first], all_offers[static_cast<std::size_t>(order[first])]);
    });
  }
  run({.collective = Collective::barrier});  // the offers are taken
  if (color < 0) {
    return nullptr;
  }
  Hash id;
  id.add(id_).add(splits_).add(static_cast<std::uint64_t>(color));
  std::byte* memory = segment->data();
  return std::make_shared<Core>(world_, std::move(segment), memory, std::move(members), rank,
                                id.value());
}

std::shared_ptr<Core> Core::subgroup(std::span<const int> members, std::uint64_t id) {
  check_usable();
  std::vector<int> ranks;  // of the world
  int rank = -1;
  const auto refuse = [this](const std::string& what) -> void {
    throw Error(ErrorCode::usage,
                "subgroup: " + what + "\nname different ranks of this group, with this one",
                {.rank = world_->rank()});
  };
  for (const int member : members) {
    if (member < 0 || member >= size()) {
      refuse(std::to_string(member) + " is not a rank of " + std::to_string(size()));
    }
    const int global = members_[static_cast<std::size_t>(member)];
    if (std::find(ranks.begin(), ranks.end(), global) != ranks.end()) {
      refuse("rank " + std::to_string(member) + " is named twice");
    }
    if (member == rank_) {
      rank = static_cast<int>(ranks.size());
    } else if (world_->same_process_as(global)) {
      throw Error(ErrorCode::usage,
                  "subgroup: ranks " + std::to_string(rank_) + " and " + std::to_string(member) +
                      " are threads of one process\nuse split(), which all ranks call",
                  {.rank = world_->rank()});
    }
    ranks.push_back(global);
  }
  if (rank < 0) {
    refuse("rank " + std::to_string(rank_) + " is not among its members");
  }
  Hash hash;
  hash.add("subgroup").add(id_).add(id);
  for (const int member : ranks) {
    hash.add(static_cast<std::uint64_t>(member));
  }
  const comm::GroupLayout layout(static_cast<int>(world_->hosts().local_of(ranks).size()));
  auto segment = world_->meet_segment(ranks, layout.bytes, hash.value());
  std::byte* memory = segment->data();
  return std::make_shared<Core>(world_, std::move(segment), memory, std::move(ranks), rank,
                                hash.value());
}

}  // namespace unisono::detail
