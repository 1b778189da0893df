// Detects other programs that compute on this rank's cores, from the time that a yield takes.
// Beside such programs, a waiting thread should sleep at once, because a thread that is woken gets
// its core soon. A thread that yields waits for whole time slices of the other programs, and a
// thread that spins uses up its own slice.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "comm/time_slice.h"

namespace unisono::comm {

// Returns the number of runnable threads on this machine; 0: unknown.
int runnable_threads() noexcept;

// Any thread may use this object. A concurrent report may get lost; the next report corrects that.
class CoreContention {
 public:
  using Clock = std::chrono::steady_clock;
  using Count = int (*)() noexcept;

  // `own` is the number of threads that share these cores and wait for each other; they are no
  // reason to sleep. It is the number of this host's ranks if there are more ranks than cores, and
  // 0 otherwise. `slice` changes the time slices of threads that sleep while contention is on.
  explicit CoreContention(int own = 0, Count runnable = runnable_threads,
                          ShortSlices::Change slice = change_time_slice) noexcept
      : own_(own), runnable_(runnable), slices_(slice) {}

  int own() const noexcept { return own_; }
  bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }
  // Returns true if contention is on and it is time to test it again with a yield. The intervals
  // grow, so that the slices lost to these tests stay a small part of the time.
  bool wants_probe(Clock::time_point now) const noexcept {
    return now.time_since_epoch().count() >= probe_at_.load(std::memory_order_relaxed);
  }
  // Records a yield. Returns true if the yield took long for any reason.
  bool gave_way(Clock::time_point from, Clock::time_point to) noexcept;
  // Call it before the thread sleeps while contention is on. Gives the calling thread short slices
  // until contention has been off for a second.
  void shorten_slice() noexcept;

 private:
  static constexpr Clock::rep kNever = std::numeric_limits<Clock::rep>::max();

  int own_;
  Count runnable_;
  ShortSlices slices_;
  std::atomic<bool> on_ = false;
  std::atomic<int> quick_ = 0;  // consecutive quick yields while it is off
  std::atomic<int> more_ = 0;   // consecutive slow yields during which more threads than `own` ran
  std::atomic<int> calm_ = 0;   // consecutive quick yields while it is on
  std::atomic<Clock::rep> pause_ = 0;
  std::atomic<Clock::rep> probe_at_ = 0;
  std::atomic<Clock::rep> give_back_at_ = kNever;  // the short slices, while it is off
};

}  // namespace unisono::comm
