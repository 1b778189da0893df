// An allocator for single objects that programs make and free at a high rate. Each thread keeps the
// blocks that it frees, and takes them again for its next objects, without a lock. malloc keeps too
// few blocks of one size for a window of requests.
#pragma once

#include <cstddef>
#include <new>

namespace unisono {

namespace detail {

// The free blocks of one thread, each of `kBytes` bytes.
template <std::size_t kBytes>
class FreeBlocks {
 public:
  FreeBlocks() = default;
  FreeBlocks(const FreeBlocks&) = delete;
  FreeBlocks& operator=(const FreeBlocks&) = delete;
  ~FreeBlocks() {
    while (first_ != nullptr) {
      ::operator delete(pop());
    }
  }
  void* take() { return first_ == nullptr ? ::operator new(kBytes) : pop(); }
  void give(void* block) noexcept {
    if (count_ == kMost) {
      ::operator delete(block);
      return;
    }
    first_ = new (block) Block{first_};
    ++count_;
  }

 private:
  struct Block {
    Block* next;
  };
  static_assert(kBytes >= sizeof(Block));
  static constexpr std::size_t kMost = 2048;
  void* pop() noexcept {
    Block* const block = first_;
    first_ = block->next;
    --count_;
    return block;
  }

  Block* first_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace detail

template <typename T>
struct BlockAllocator {
  using value_type = T;
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

  BlockAllocator() = default;
  template <typename U>
  BlockAllocator(const BlockAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    return static_cast<T*>(count == 1 ? blocks().take() : ::operator new(count * sizeof(T)));
  }
  void deallocate(T* object, std::size_t count) noexcept {
    if (count == 1) {
      blocks().give(object);
    } else {
      ::operator delete(object);
    }
  }
  template <typename U>
  bool operator==(const BlockAllocator<U>&) const noexcept {
    return true;
  }

 private:
  static detail::FreeBlocks<sizeof(T)>& blocks() {
    static thread_local detail::FreeBlocks<sizeof(T)> blocks;
    return blocks;
  }
};

}  // namespace unisono
