#include "comm/peer_memory.h"

#include <algorithm>

#include "comm/core.h"

namespace unisono::detail {

PeerMemory::PeerMemory(const Communicator& communicator) : core_(communicator.core_) {
  if (core_ == nullptr) {
    throw Error(ErrorCode::usage, "this communicator is empty\nit was moved from");
  }
  comm::World& world = core_->world();
  const std::vector<int>& members = core_->members();
  shared_by_all_ = std::all_of(members.begin(), members.end(),
                               [&](int rank) { return world.hosts().is_here(rank); });
  one_process_ = std::all_of(members.begin(), members.end(),
                             [&](int rank) { return world.same_process_as(rank); });
}

PeerMemory::Name PeerMemory::name(const void* data, std::size_t bytes) const noexcept {
  Name name{.address = reinterpret_cast<std::uintptr_t>(data)};
  if (const std::optional<shm::Region> region = core_->world().regions().holding(data, bytes)) {
    name.offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(data) - region->base);
    name.region = region->number;
  }
  return name;
}

const std::byte* PeerMemory::find(int rank, const Name& name, std::size_t bytes) const noexcept {
  comm::World& world = core_->world();
  const int member = core_->members()[static_cast<std::size_t>(rank)];
  if (world.same_process_as(member)) {
    return reinterpret_cast<const std::byte*>(name.address);
  }
  const std::optional<shm::Region> region =
      world.regions().of_peer(world.hosts().local(member), name.region);
  if (!region || name.offset > region->bytes || bytes > region->bytes - name.offset) {
    return nullptr;
  }
  return region->base + name.offset;
}

}  // namespace unisono::detail
