// Whether others compute on the cores of a rank, as the time shows that giving way takes. Where
// they do, a thread that waits had better sleep at once: one that is woken gets its core soon, one
// that gave way waits for whole time slices of the others, and one that looks and looks uses up its
// own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

#include "comm/time_slice.h"

namespace unisono::comm {

// Threads that run or want to, on this machine; 0: not known.
int runnable_threads() noexcept;

// Any threads may use one; what they tell at once may get lost, which the next one mends.
class CoreContention {
 public:
  using Clock = std::chrono::steady_clock;
  using Count = int (*)() noexcept;

  // `own`: the threads that take turns on these cores while they wait for each other, of which a
  // slow one is no reason to sleep: the ranks of this host if they are more than its cores, else 0.
  // `slice`: what changes the time slices of threads that sleep while it is on.
  explicit CoreContention(int own = 0, Count runnable = runnable_threads,
                          ShortSlices::Change slice = change_time_slice) noexcept
      : own_(own), runnable_(runnable), slices_(slice) {}

  int own() const noexcept { return own_; }
  bool is_on() const noexcept { return on_.load(std::memory_order_relaxed); }
  // While it is on: whether to give way again, to see if it still is. More seldom each time, so
  // that the whole slices which that costs are a small part of the time.
  bool wants_probe(Clock::time_point now) const noexcept {
    return now.time_since_epoch().count() >= probe_at_.load(std::memory_order_relaxed);
  }
  // True: it took long, whoever was before.
  bool gave_way(Clock::time_point from, Clock::time_point to) noexcept;
  // The calling thread will sleep while it is on: it gets short slices until it has been off for a
  // second.
  void shorten_slice() noexcept;

 private:
  static constexpr Clock::rep kNever = std::numeric_limits<Clock::rep>::max();

  int own_;
  Count runnable_;
  ShortSlices slices_;
  std::atomic<bool> on_ = false;
  std::atomic<int> quick_ = 0;  // how often giving way was, since it last was not, while it is off
  std::atomic<int> more_ = 0;   // slow ones in a row that saw more threads run than are own
  std::atomic<int> calm_ = 0;   // how often giving way was quick, since it last was not
  std::atomic<Clock::rep> pause_ = 0;
  std::atomic<Clock::rep> probe_at_ = 0;
  std::atomic<Clock::rep> give_back_at_ = kNever;  // the short slices, while it is off
};

}  // namespace unisono::comm
