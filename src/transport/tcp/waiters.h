// The threads that wait for the connections of a process, and how many arrivals each knew of when
// its last wait returned: what has come since, another thread may have read for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

namespace unisono::tcp {

// Any thread may call.
class Waiters {
 public:
  // What the calling thread knew. nullopt: it has not waited yet, or was forgotten, because there
  // were many others; then it looks once more than it must.
  std::optional<std::uint32_t> seen() noexcept;
  void note_seen(std::uint32_t arrivals) noexcept;

 private:
  struct Waiter {
    std::thread::id thread;
    std::uint32_t seen = 0;
  };
  static constexpr std::size_t kMost = 16;

  // nullptr: it is not known. REQUIRES: mutex_ is held.
  Waiter* find(std::thread::id thread) noexcept;

  std::mutex mutex_;  // guards the rest
  std::array<Waiter, kMost> waiters_ = {};
  std::size_t next_ = 0;  // to be forgotten
};

}  // namespace unisono::tcp
