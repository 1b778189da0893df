// The memory that a group's ranks share: an arena of each rank for counts, records and scratch, and
// the memory from allocate().
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
  // Errors: config if a device cannot reach the memory of another.
  SharedMemory(Communicator& comm, Context& context, std::uint32_t channels,
               std::size_t scratch_bytes);

  // Collective. Returns zeroed memory.
  void* allocate(std::size_t bytes);
  // Returns the number of the allocation that contains all of it; 0: none.
  std::uint32_t region_of(const void* data, std::size_t bytes) const;
  // Returns true if there are allocations: the same on all ranks.
  bool has_regions() const noexcept { return !regions_.empty(); }
  // All ranks are threads of this process, and directly reach all memory from cudaMalloc.
  bool one_process() const noexcept { return one_process_; }
  // All ranks are also on one device. REQUIRES: one_process().
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
    std::int64_t device = 0;  // by the numbering of that rank's process
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
  std::vector<Region> regions_ = {};  // of this rank; number 1 is the first
};

}  // namespace unisono::device
