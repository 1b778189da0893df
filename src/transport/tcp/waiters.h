// The threads that wait for the connections of a process. Each thread has the number of arrivals at
// the time when its previous wait returned. If there are more arrivals now, another thread may have
// read data for this thread.
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
  // Returns the count that the calling thread knew. Returns nullopt if the thread has not waited
  // yet, or if its entry was replaced because many threads wait; the thread then polls once more
  // than necessary.
  std::optional<std::uint32_t> seen() noexcept;
  void note_seen(std::uint32_t arrivals) noexcept;

 private:
  struct Waiter {
    std::thread::id thread;
    std::uint32_t seen = 0;
  };
  static constexpr std::size_t kMost = 16;

  // Returns nullptr if the thread is unknown. REQUIRES: mutex_ is held.
  Waiter* find(std::thread::id thread) noexcept;

  std::mutex mutex_;  // guards the rest
  std::array<Waiter, kMost> waiters_ = {};
  std::size_t next_ = 0;  // the next entry to be dropped
};

}  // namespace unisono::tcp
