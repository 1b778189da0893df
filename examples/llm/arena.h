// Memory for weights, in huge pages where the system has them: they are read faster, and the system
// takes them back at once when a rank dies, which is when the others learn of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace llm {

class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  // Zeros, aligned to 64 bytes, until the arena ends. Errors: std::bad_alloc.
  std::byte* take(std::size_t bytes);

 private:
  std::span<std::byte> map(std::size_t bytes);

  std::vector<std::span<std::byte>> mapped_;
  std::span<std::byte> rest_;  // of the latest part that several share
};

}  // namespace llm
