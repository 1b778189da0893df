// A memfd and its mapping: shared memory without a name, which disappears when its last user ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/unique_fd.h"

namespace unisono::shm {

// Returns a new zeroed memfd with sealed size; pages cost nothing until touched. Throws resource.
UniqueFd create_memory(const char* name, std::size_t bytes);

class Mapping {
 public:
  // Throws resource.
  Mapping(int fd, std::size_t bytes);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Copies from another process's memory, as far as the kernel permits. Returns the number of bytes
// copied.
std::size_t read_process(int pid, std::uint64_t address, void* target, std::size_t bytes) noexcept;

}  // namespace unisono::shm
