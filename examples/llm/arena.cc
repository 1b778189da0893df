#include "arena.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace llm {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kShared = 16 * kHugePage;  // smaller requests share mappings of this size
constexpr std::size_t kAlignment = 64;

std::size_t rounded(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace

Arena::~Arena() {
  for (const auto part : mapped_) {
    ::munmap(part.data(), part.size());
  }
}

std::span<std::byte> Arena::map(std::size_t bytes) {
  mapped_.reserve(mapped_.size() + 1);
  const std::size_t whole = rounded(bytes, kHugePage) + kHugePage;  // room to align the start
  void* const at =
      ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) {
    throw std::bad_alloc();
  }
  mapped_.emplace_back(static_cast<std::byte*>(at), whole);
  const std::size_t skipped = -reinterpret_cast<std::uintptr_t>(at) % kHugePage;
  const auto aligned = mapped_.back().subspan(skipped, whole - kHugePage);
  // A system without huge pages refuses, and uses small pages.
  ::madvise(aligned.data(), aligned.size(), MADV_HUGEPAGE);
  return aligned;
}

std::byte* Arena::take(std::size_t bytes) {
  bytes = rounded(bytes, kAlignment);
  if (bytes >= kShared) {
    return map(bytes).data();
  }
  if (bytes > rest_.size()) {
    rest_ = map(kShared);
  }
  std::byte* const taken = rest_.data();
  rest_ = rest_.subspan(bytes);
  return taken;
}

}  // namespace llm
