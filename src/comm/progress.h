// The progress thread of a world. While no caller waits, it advances the pending operations of the
// world's groups, so that communication overlaps with computation. There is one thread for any
// number of groups.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/waiter.h"

namespace unisono::comm {

// Callbacks of operations that have ended; they must be called while no lock is held.
using Finished = std::vector<std::function<void()>>;
void tell(const Finished& finished);

// A group as the progress thread sees it.
class Driven {
 public:
  // Returns the number of pending operations. Any thread.
  virtual int pending() const noexcept = 0;
  // Returns true if something is pending and no caller waits for it. Any thread.
  virtual bool wants_driving() const noexcept = 0;
  // Advances the group by one poll. Returns true if something advanced.
  virtual bool drive_pending(Finished& finished) = 0;
  // Called occasionally while nothing advances.
  virtual void look_around_pending() = 0;

 protected:
  ~Driven() = default;
};

class ProgressThread {
 public:
  explicit ProgressThread(WaitEnvironment& around) : around_(around) {}
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  ~ProgressThread();  // joins it

  // The first call starts the thread. Throws resource if the thread cannot be started.
  void add(Driven& group);
  // Removes a group. Afterwards the thread does not touch the group. Must not be called from one of
  // the group's own callbacks in Finished.
  void remove(Driven& group);
  // Returns the number of pending operations of all groups. Must not be called with the lock of a
  // group.
  int pending() const;
  // Tells the thread that a group wants driving, now or within kLinger. A caller that posts a
  // window of short messages soon waits for them itself, and most windows then cost no system call.
  void wake(bool now);

 private:
  static constexpr std::chrono::milliseconds kLinger{1};

  void run();
  void sleep(std::uint64_t seen);
  bool drive_all(bool& wanted);
  // Calls drive_pending() for the thread. An error ends the world on all ranks, because the thread
  // has no caller that could catch it.
  bool drive_or_raise(bool& wanted) noexcept;

  WaitEnvironment& around_;
  mutable std::mutex listing_;  // guards groups_; held while they are driven
  std::vector<Driven*> groups_;
  std::mutex sleeping_;  // guards stopping_ and thread_
  std::condition_variable work_;
  bool stopping_ = false;
  std::atomic<std::uint64_t> wakes_ = 0;  // those that say now
  std::atomic<bool> is_asleep_ = false;
  // The thread looks at the groups again within kLinger, without a wake.
  std::atomic<bool> lingers_ = false;
  std::atomic<bool> was_called_ = false;  // by a wake that does not say now
  std::thread thread_;
};

}  // namespace unisono::comm
