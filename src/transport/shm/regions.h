// Registered memory: this rank's regions, and the peers' regions as mapped here.
//
// Lookups take no lock: they read an immutable list behind an atomic pointer. Lists are replaced
// when a region comes or goes, which is rare, and old ones are kept until the world ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "transport/shm/segment.h"

namespace unisono::shm {

struct Region {
  const std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::uint32_t number = 0;
  int owner = -1;  // rank in the world
};

class Regions {
 public:
  // Tells all peers of other processes: a new region with its descriptor, or (fd -1) one that is
  // gone. False: could not now.
  using Announce = std::function<bool(std::uint32_t number, std::size_t bytes, int fd)>;
  // Takes in what peers have announced, by calling learn() and forget().
  using Drain = std::function<void()>;
  Regions(int rank, Announce announce, Drain drain);

  // This rank's memory. 0: a peer reads too few of its announcements to be told; the memory is then
  // not shared, and goes through slots.
  std::uint32_t add(const std::byte* base, std::size_t bytes, int fd);
  void remove(std::uint32_t number) noexcept;
  // The own region that holds all of this memory, or nullptr.
  const Region* holding(const void* data, std::size_t bytes) const noexcept {
    const List* list = list_.load(std::memory_order_acquire);
    const auto* first = static_cast<const std::byte*>(data);
    for (const Region& region : *list) {
      if (region.owner == rank_ && first >= region.base &&
          first + bytes <= region.base + region.bytes) {
        return &region;
      }
    }
    return nullptr;
  }

  // Whether any of this memory is in an own region.
  bool overlaps(const void* data, std::size_t bytes) const noexcept;

  // A peer's region. Takes in announcements if it is not known yet; nullptr if it is still unknown.
  const Region* of_peer(int owner, std::uint32_t number) noexcept;
  // Takes in what has been announced.
  void drain();
  void learn(int owner, std::uint32_t number, std::size_t bytes, int fd);
  void forget(int owner, std::uint32_t number);

 private:
  using List = std::vector<Region>;
  const Region* find(int owner, std::uint32_t number) const noexcept;
  void replace(List list);

  int rank_;
  Announce announce_;
  Drain drain_;
  std::recursive_mutex changing_;  // guards replacement and `lists_`
  std::vector<std::unique_ptr<const List>> lists_;
  std::atomic<const List*> list_;
  std::map<std::pair<int, std::uint32_t>, Mapping> mapped_;  // the peers' regions
  std::uint32_t next_number_ = 1;
};

}  // namespace unisono::shm
