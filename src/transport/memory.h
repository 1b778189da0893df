// Memory for lanes between hosts: pages that cost nothing until they are touched; slots for long
// messages, reused while they are still in the cache; and rings for short messages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "transport/window.h"

namespace unisono::transport {

// Zeroed pages. data() is nullptr if the system refuses them.
class Pages {
 public:
  explicit Pages(std::size_t bytes) noexcept : bytes_(bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() {
    if (data_ != nullptr) {
      ::munmap(data_, bytes_);
    }
  }
  std::byte* data() const noexcept { return data_; }
  bool holds(const std::byte* place) const noexcept {
    return !std::less<>{}(place, data_) && std::less<>{}(place, data_ + bytes_);
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_;
};

// Slots of kMostBytes each. take() prefers the slot that was returned last, and allocates only if
// every slot is in use.
class Slots {
 public:
  // Returns nullptr if there is no memory.
  std::byte* take() noexcept {
    if (free_.empty()) {
      grow();
    }
    if (free_.empty()) {
      return nullptr;
    }
    std::byte* slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(const std::byte* slot) noexcept {
    free_.push_back(const_cast<std::byte*>(slot));  // NOLINT: it was ours; grow() made room
  }
  std::size_t count() const noexcept { return all_.size(); }

 private:
  void grow() noexcept {
    try {
      free_.reserve(all_.size() + 1);
      all_.push_back(std::make_unique<Pages>(kMostBytes));
    } catch (...) {
      return;  // free_ stays empty
    }
    if (all_.back()->data() == nullptr) {
      all_.pop_back();
      return;
    }
    free_.push_back(all_.back()->data());
  }

  std::vector<std::unique_ptr<Pages>> all_;
  std::vector<std::byte*> free_;
};

// A message that does not fit before the end of the ring is placed at its start.
inline constexpr std::size_t kRingBytes = kShortWindow + 2 * kShortBytes;

// Short messages in a ring of memory, released in order.
class MessageRing {
 public:
  explicit MessageRing(std::byte* memory) : memory_(memory) {}

  // Returns nullptr if there is no room.
  std::byte* place(std::size_t bytes) noexcept {
    const std::size_t room = room_of(bytes);
    if (used_ == 0) {
      head_ = 0;
      tail_ = 0;
    }
    const bool wrapped = used_ != 0 && head_ <= tail_;
    if (!wrapped && head_ + room > kRingBytes) {
      head_ = 0;
      return room <= tail_ ? take(room) : nullptr;
    }
    return head_ + room <= (wrapped ? tail_ : kRingBytes) ? take(room) : nullptr;
  }
  // Releases the oldest message.
  void release(const std::byte* data, std::size_t bytes) noexcept {
    const std::size_t room = room_of(bytes);
    tail_ = static_cast<std::size_t>(data - memory_) + room;
    used_ -= room;
  }

 private:
  std::byte* take(std::size_t room) noexcept {
    std::byte* data = memory_ + head_;
    head_ += room;
    used_ += room;
    return data;
  }

  std::byte* memory_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::size_t used_ = 0;
};

}  // namespace unisono::transport
