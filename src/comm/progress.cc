#include "comm/progress.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "unisono/error.hpp"

namespace unisono::comm {

void tell(const Finished& finished) {
  for (const auto& done : finished) {
    done();
  }
}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(sleeping_);
    stopping_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ProgressThread::add(Driven& group) {
  {
    const std::lock_guard lock(listing_);
    groups_.push_back(&group);
  }
  const std::lock_guard lock(sleeping_);
  if (thread_.joinable()) {
    return;
  }
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::resource,
                std::string("cannot start the thread that moves operations nobody waits for: ") +
                    error.what() +
                    "\nraise the limits on threads and memory (ulimit -u, ulimit -v)");
  }
}

void ProgressThread::remove(Driven& group) {
  const std::lock_guard lock(listing_);
  std::erase(groups_, &group);
}

int ProgressThread::pending() const {
  const std::unique_lock lock(listing_, std::try_to_lock);
  if (!lock) {
    return -1;  // it drives; the caller must not wait for it
  }
  int pending = 0;
  for (const Driven* group : groups_) {
    pending += group->pending();
  }
  return pending;
}

// No wake is lost: a caller counts its operation as pending before it reads lingers_, and the
// thread looks for pending operations after it has written lingers_. The same holds for wakes_ and
// was_called_ on the one side, and is_asleep_ on the other.
void ProgressThread::wake(bool now) {
  if (now) {
    wakes_.fetch_add(1);
  } else if (!lingers_.load()) {
    was_called_.store(true);
  } else {
    if (!was_called_.load(std::memory_order_relaxed)) {
      was_called_.store(true, std::memory_order_relaxed);
    }
    return;
  }
  if (is_asleep_.load()) {
    {
      const std::lock_guard lock(sleeping_);
    }
    work_.notify_one();
  }
}

// Sleeps until a wake that is not among the first `seen`, or until kLinger after any other wake.
void ProgressThread::sleep(std::uint64_t seen) {
  const auto is_due = [&] { return stopping_ || wakes_.load() != seen; };
  std::unique_lock lock(sleeping_);
  is_asleep_.store(true);
  if (!lingers_.load()) {
    work_.wait(lock, [&] { return is_due() || was_called_.load(); });
    lingers_.store(true);
  }
  work_.wait_for(lock, kLinger, is_due);
  lingers_.store(was_called_.exchange(false) || wakes_.load() != seen);
  is_asleep_.store(false);
}

bool ProgressThread::drive_all(bool& wanted) {
  bool advanced = false;
  wanted = false;
  Finished finished;
  {
    const std::lock_guard lock(listing_);
    for (Driven* group : groups_) {
      if (group->wants_driving()) {
        wanted = true;
        advanced |= group->drive_pending(finished);
      }
    }
  }
  tell(finished);
  return advanced;
}

bool ProgressThread::drive_or_raise(bool& wanted) noexcept {
  try {
    return drive_all(wanted);
  } catch (const std::exception& error) {  // no memory to report the end of an operation
    around_.raise(error);
    return false;
  }
}

void ProgressThread::run() {
  // The caller computes meanwhile, perhaps on this very core, and has priority. The duration of a
  // yield shows whether it does.
  WaitPolicy policy = around_.wait_policy();
  policy.spin = std::min(policy.spin, 100);
  // This thread has its own CoreContention: callers that wait while nothing computes must not
  // inherit its results.
  CoreContention contention(around_.contention().own());
  Waiter waiter(around_, 0, policy, contention);
  for (;;) {
    {
      const std::lock_guard lock(sleeping_);
      if (stopping_) {
        return;
      }
    }
    const std::uint64_t seen = wakes_.load();
    bool wanted = false;
    if (drive_or_raise(wanted)) {
      waiter.reset();
      continue;
    }
    if (!wanted) {
      sleep(seen);
      waiter.reset();
      continue;
    }
    if (!waiter.spin()) {
      waiter.pause([&] { return drive_or_raise(wanted); },
                   [this] {
                     const std::lock_guard lock(listing_);
                     for (Driven* group : groups_) {
                       if (group->wants_driving()) {
                         group->look_around_pending();
                       }
                     }
                   });
    }
  }
}

}  // namespace unisono::comm
