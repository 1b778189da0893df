// Registered memory for standard containers:
//
//   const unisono::allocator<float> memory(comm);
//   std::vector<float, unisono::allocator<float>> gradients(count, memory);
//
// Peers on this host read such a container directly. Every allocation is a separate region of whole
// pages, and costs some system calls and a message to every peer. So use the allocator for few,
// large, long-lived containers. A container keeps its world open: the rank leaves the world when
// the communicator and all these containers are destroyed.
//
// Threads: any.
// Errors: those of Communicator::allocate(). After an abort no container can grow.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "unisono/communicator.hpp"
#include "unisono/export.hpp"

namespace unisono {

namespace detail {

// The regions of an allocator and of its copies.
// Threads: any.
class UNISONO_EXPORT Heap {
 public:
  explicit Heap(const Communicator& communicator);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap();
  void* allocate(std::size_t bytes);
  void deallocate(void* memory) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

template <typename T>
class allocator {  // Gives containers registered memory.
 public:
  using value_type = T;  // the name that containers expect
  // If a container's memory moves to another container, the allocator moves with the memory.
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  explicit allocator(const Communicator& communicator)  // Local. Keeps the communicator.
      : heap_(std::make_shared<detail::Heap>(communicator)) {}
  template <typename U>
  allocator(const allocator<U>& other) noexcept  // NOLINT(google-explicit-constructor)
      : heap_(other.heap_) {}

  T* allocate(std::size_t count) {  // Local. Makes a region of `count` elements.
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      throw std::bad_array_new_length();
    }
    return static_cast<T*>(heap_->allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t) noexcept { heap_->deallocate(memory); }  // Local.

  template <typename U>
  bool operator==(const allocator<U>& other) const noexcept {
    return heap_ == other.heap_;
  }

 private:
  template <typename>
  friend class allocator;
  std::shared_ptr<detail::Heap> heap_;
};

}  // namespace unisono
