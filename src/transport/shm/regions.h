// Registered memory: this rank's regions, and this process's mappings of the peers' regions.
//
// Lookups take no lock and allocate nothing (region_table.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "transport/shm/region_table.h"
#include "transport/shm/segment.h"

namespace unisono::shm {

class Regions {
 public:
  // Announces a region to all peers in other processes: a new region with its descriptor, or a
  // removed one with fd -1. Returns false if that is impossible now.
  using Announce = std::function<bool(std::uint32_t number, std::size_t bytes, int fd)>;
  // Receives the peers' announcements, by calling learn() and forget().
  using Drain = std::function<void()>;
  Regions(int rank, Announce announce, Drain drain);

  // Adds memory of this rank, which other ranks of this process read at `in_process`. Returns 0 if
  // a peer has too many unread announcements. Then the memory is not shared, and its data goes
  // through slots.
  std::uint32_t add(const std::byte* base, std::size_t bytes, int fd, const std::byte* in_process);
  void remove(std::uint32_t number) noexcept;
  // Returns this rank's region that contains the whole range.
  std::optional<SharedRegion> holding(const void* data, std::size_t bytes) const noexcept {
    const auto* first = static_cast<const std::byte*>(data);
    return table_.find([&](const SharedRegion& region) {
      return region.owner == rank_ && first >= region.base &&
             first + bytes <= region.base + region.bytes;
    });
  }

  // Returns true if a region of this rank contains any byte of the range.
  bool overlaps(const void* data, std::size_t bytes) const noexcept;

  // Returns a peer's region. If the region is not known yet, first receives announcements. Returns
  // nothing if it is still unknown.
  std::optional<SharedRegion> of_peer(int owner, std::uint32_t number) noexcept;
  // Receives announcements.
  void drain();
  void learn(int owner, std::uint32_t number, std::size_t bytes, int fd);
  void forget(int owner, std::uint32_t number) noexcept;

 private:
  std::optional<SharedRegion> find(int owner, std::uint32_t number) const noexcept;

  int rank_;
  Announce announce_;
  Drain drain_;
  std::recursive_mutex changing_;  // guards changes of the members below
  RegionTable table_;
  std::map<std::pair<int, std::uint32_t>, Mapping> mapped_;  // the peers' regions
  std::uint32_t next_number_ = 1;
};

}  // namespace unisono::shm
