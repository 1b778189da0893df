// The one progress thread of a world: moves what is pending on its groups while nobody waits, so
// that communication overlaps with computation. One thread, however many groups there are.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/waiter.h"

namespace unisono::comm {

// To be called, outside of all locks, for operations that have ended.
using Finished = std::vector<std::function<void()>>;
void tell(const Finished& finished);

// A group, as the progress thread sees it.
class Driven {
 public:
  // Whether something is pending that nobody waits for. Any thread.
  virtual bool wants_driving() const noexcept = 0;
  // Moves it by one poll. True: something advanced.
  virtual bool drive_pending(Finished& finished) = 0;
  // Asked now and then while nothing moves.
  virtual void look_around_pending() = 0;

 protected:
  ~Driven() = default;
};

class ProgressThread {
 public:
  explicit ProgressThread(Surroundings& around) : around_(around) {}
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  ~ProgressThread();  // joins it

  // The first one starts the thread. Throws resource if there can be none.
  void add(Driven& group);
  // After it the thread does not touch the group. Not from a function in Finished of that group.
  void remove(Driven& group);
  // A group wants driving now.
  void wake();

 private:
  void run();
  bool drive_all(bool& wanted);
  // The same for the thread: nobody catches what it throws, so all ranks are told.
  bool drive_or_raise(bool& wanted) noexcept;

  Surroundings& around_;
  std::mutex listing_;  // guards groups_, and is held while they are driven
  std::vector<Driven*> groups_;
  std::mutex sleeping_;  // guards what follows
  std::condition_variable work_;
  std::uint64_t wakes_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace unisono::comm
