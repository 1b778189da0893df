// A memfd and its mapping: shared memory without a name, gone with its last user.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace unisono::shm {

// Owns a descriptor. Closed when destroyed.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

// A new sealed-size memfd of zeros; pages cost nothing until touched. Throws resource.
Descriptor create_memory(const char* name, std::size_t bytes);

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

// Copies from the memory of a process, as far as this one may. Returns how many bytes; 0: none.
std::size_t read_process(int pid, std::uint64_t address, void* target, std::size_t bytes) noexcept;

}  // namespace unisono::shm
