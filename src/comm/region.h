// Registered memory: either allocated on a memfd, or adopted by moving ordinary pages to a memfd at
// the same address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/shm/segment.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {

class World;

}  // namespace unisono::comm

namespace unisono::detail {

struct RegionState {
  ~RegionState();
  std::shared_ptr<comm::World> world;  // the world that it is registered in
  std::uint32_t number = 0;
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::size_t usable = 0;  // the bytes that an allocation asked for
  bool adopted = false;
  // The mapping that other ranks of this process read: for allocated memory the memory itself; for
  // adopted memory a second mapping, because the owner may free the memory. nullptr if no other
  // rank of this process needs it.
  std::unique_ptr<shm::Mapping> shared;
};

// Implement Communicator::allocate() and register_buffer().
std::unique_ptr<RegionState> allocate(const std::shared_ptr<comm::World>& world, std::size_t bytes);
std::unique_ptr<RegionState> adopt(const std::shared_ptr<comm::World>& world,
                                   std::span<std::byte> memory);

// Implement Communicator::place_of() and peer_memory(). `rank` is a world rank, or -1 for none.
SharedPlace place_of(comm::World& world, const void* data, std::size_t bytes);
const std::byte* peer_memory(comm::World& world, int rank, const SharedPlace& place,
                             std::size_t bytes);

}  // namespace unisono::detail
