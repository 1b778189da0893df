// Memory that a group's ranks share: an arena per rank for counts, records and scratch, and the
// memory from allocate().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/context.h"
#include "device/image.h"

namespace unisono {

class Communicator;

}  // namespace unisono

namespace unisono::device {

class SharedMemory {
 public:
  // Errors: config if a device cannot reach another device's memory.
  SharedMemory(Communicator& comm, Context& context, std::uint32_t channels,
               std::size_t scratch_bytes);

  // Collective. Returns zeroed memory.
  void* allocate(std::size_t bytes);
  // Returns the number of the allocation that contains the whole buffer, or 0.
  std::uint32_t region_of(const void* data, std::size_t bytes) const;
  // Returns true if there are allocations. All ranks return the same value.
  bool has_regions() const noexcept { return !regions_.empty(); }
  // Returns true if all ranks are threads of this process, so they reach all memory from cudaMalloc
  // directly.
  bool one_process() const noexcept { return one_process_; }
  // Returns true if all ranks use one device. REQUIRES: one_process().
  bool one_device() const noexcept { return one_device_; }
  std::span<const std::uint64_t> arenas() const noexcept { return arenas_; }
  const ArenaLayout& layout() const noexcept { return layout_; }
  const std::uint64_t* shifts() const noexcept {
    return reinterpret_cast<const std::uint64_t*>(shifts_);
  }

 private:
  struct Region {
    std::uint64_t base = 0, bytes = 0;
  };
  struct Peer {
    bool same_process = false;
    std::int64_t device = 0;  // number in the peer's process
  };
  IpcHandle handle_of(std::uint64_t base) const;
  std::uint64_t place_here(std::size_t rank, std::uint64_t base, const IpcHandle& handle);
  template <class Step>
  void reach(std::size_t rank, const Step& step) const;

  Communicator& comm_;
  Context& context_;
  bool one_process_ = true;
  bool one_device_ = true;
  std::vector<Peer> peers_ = {};  // [rank]
  ArenaLayout layout_ = {};
  std::vector<std::uint64_t> arenas_ = {};
  std::uint64_t shifts_ = 0;
  std::vector<Region> regions_ = {};  // this rank's allocations, numbered from 1
};

}  // namespace unisono::device
