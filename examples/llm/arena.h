// Memory for weights, in huge pages if the system has them. Huge pages are read faster. When a rank
// dies, the system also releases them faster, so the other ranks notice the death sooner.
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
  // Returns zeroed memory, aligned to 64 bytes, that lives as long as the arena. Errors:
  // std::bad_alloc.
  std::byte* take(std::size_t bytes);

 private:
  std::span<std::byte> map(std::size_t bytes);

  std::vector<std::span<std::byte>> mapped_;
  std::span<std::byte> rest_;  // unused rest of the latest shared mapping
};

}  // namespace llm
