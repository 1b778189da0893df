// The memory that the ranks of a group have of each other: an arena of each for counts, records and
// scratch, and what allocate() gave.
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
  // Collective.
  SharedMemory(Communicator& comm, Context& context, int device, std::uint32_t channels,
               std::size_t scratch_bytes);

  // Collective; zeroed.
  void* allocate(std::size_t bytes);
  // The number of the allocation that has all of it; 0: none.
  std::uint32_t region_of(const void* data, std::size_t bytes) const;
  // Whether there are allocations: the same on all ranks.
  bool has_regions() const noexcept { return !regions_.empty(); }
  // All ranks are threads of this process, and reach all memory as it is.
  bool one_process() const noexcept { return one_process_; }
  std::span<const std::uint64_t> arenas() const noexcept { return arenas_; }
  const ArenaLayout& layout() const noexcept { return layout_; }
  const std::uint64_t* shifts() const noexcept {
    return reinterpret_cast<const std::uint64_t*>(shifts_);
  }

 private:
  struct Region {
    std::uint64_t base = 0, bytes = 0;
  };
  IpcHandle handle_of(std::uint64_t base) const;
  std::uint64_t place_here(std::uint64_t base, const IpcHandle& handle, bool same_process);

  Communicator& comm_;
  Context& context_;
  bool one_process_ = true;
  std::vector<bool> same_process_ = {};  // [rank]
  ArenaLayout layout_ = {};
  std::vector<std::uint64_t> arenas_ = {};
  std::uint64_t shifts_ = 0;
  std::vector<Region> regions_ = {};  // of this rank; number 1 is the first
};

}  // namespace unisono::device
