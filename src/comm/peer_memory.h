// Memory that ranks of one host read where it lies, for the layers above the communicator.
//
// name() gives words that travel to a peer as plain data; find() turns a peer's words into an
// address of this process. Whoever reads must know from elsewhere (a collective) that the memory
// has been written and that its owner leaves it alone meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "unisono/communicator.hpp"

namespace unisono::detail {

class PeerMemory {
 public:
  struct Name {
    std::uint64_t address = 0;  // in the owner's process
    std::uint64_t offset = 0;   // in the region
    std::uint32_t region = 0;   // 0: not registered
    std::uint32_t reserved = 0;
  };

  explicit PeerMemory(const Communicator& communicator);
  // Whether all ranks of the group share memory.
  bool is_shared_by_all() const noexcept { return shared_by_all_; }
  // Whether the peers can read this memory where it lies. Threads of one process read any.
  bool is_readable(const Name& name) const noexcept { return one_process_ || name.region != 0; }
  Name name(const void* data, std::size_t bytes) const noexcept;
  // nullptr: this process does not know the region.
  const std::byte* find(int rank, const Name& name, std::size_t bytes) const noexcept;

 private:
  std::shared_ptr<Core> core_;
  bool shared_by_all_ = false;
  bool one_process_ = false;
};

}  // namespace unisono::detail
