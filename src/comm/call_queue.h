// The asynchronous operations of a group: they wait here for their turn, and whoever waits drives
// them, or the world's progress thread when nobody does.
//
// Collectives run one after the other, in the order of the calls, which is the same on all ranks. A
// blocking call runs in its thread with no queue and no lock while nothing asynchronous is pending.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/fabric.h"
#include "comm/progress.h"
#include "comm/request.h"

namespace unisono::comm {

class Group;
class Operations;

class CallQueue final : public detail::RequestDriver, private Driven {
 public:
  using RequestState = detail::RequestState;

  // Both outlive it.
  CallQueue(Group& group, Operations& operations) : group_(group), operations_(operations) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  ~CallQueue();

  // A blocking call that is alone: nothing asynchronous is pending, and a second thread that comes
  // meanwhile is refused. Collectives and transfers have nothing in common but the world, and do
  // not refuse each other. False: it must be posted.
  class Alone {
   public:
    Alone(CallQueue& queue, Fabric::Use use);
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    ~Alone() {
      if (alone_) {
        used_.store(false, std::memory_order_release);
      }
    }
    explicit operator bool() const noexcept { return alone_; }

   private:
    std::atomic<bool>& used_;
    bool alone_ = false;
  };
  // The planner is used by a blocking call without the lock: a thread that plans counts as pending
  // meanwhile.
  class Planning {
   public:
    explicit Planning(CallQueue& queue);
    Planning(const Planning&) = delete;
    Planning& operator=(const Planning&) = delete;
    ~Planning() { queue_.pending_.fetch_sub(1, std::memory_order_release); }

   private:
    CallQueue& queue_;
    std::lock_guard<std::mutex> lock_;
  };

  void post(const std::shared_ptr<RequestState>& request);
  void wait(RequestState& request, int timeout_ms) override;
  void drop(RequestState& request) noexcept override;
  bool test(RequestState& request) override;
  void on_done(RequestState& request, std::function<void(const Error*)> tell) override;
  int source(const RequestState& request) const override;
  [[noreturn]] void refuse_second_thread() const;
  // The limit of a call that has this one; a negative one means the world's.
  int effective_timeout(int timeout_ms) const;

 private:
  class Waiting;
  // As wait(), but leaves the error to the caller.
  void await(RequestState& request, int timeout_ms);
  // Something that is pending from now on, unless a blocking call runs alone: then it throws.
  void announce(const std::atomic<bool>& used);
  std::atomic<bool>& used_by(Fabric::Use use) {
    return use == Fabric::Use::collectives ? collecting_ : transferring_;
  }
  static std::size_t bytes_of(const RequestState& request);
  void start(const std::shared_ptr<RequestState>& request);
  // Moves everything pending by one poll. REQUIRES: driving_ is held.
  bool drive();
  bool drive_all();
  bool drive_collectives();
  bool drive_transfers();
  bool drive_and_tell();  // takes the lock itself
  bool wants_driving() const noexcept override {
    return pending_.load(std::memory_order_relaxed) != 0 &&
           waiters_.load(std::memory_order_relaxed) == 0;
  }
  bool drive_pending(Finished& finished) override;
  void look_around_pending() override;
  void check_deadlines();
  void complete(RequestState& request, std::unique_ptr<Error> error);
  void fail_all();

  Group& group_;
  Operations& operations_;
  std::mutex driving_;  // guards the operations and all that follows while pending_ is not 0
  std::deque<std::shared_ptr<RequestState>> queue_;    // collectives; the first one runs
  bool running_ = false;                               // the first has begun
  std::vector<std::shared_ptr<RequestState>> moving_;  // sends and receives
  // No limit of theirs is less. Left over from before where the first of them has none.
  int least_limit_ms_ = 0;
  std::atomic<int> pending_ = 0;
  std::atomic<bool> collecting_ = false;    // a blocking collective runs alone
  std::atomic<bool> transferring_ = false;  // a blocking send or recv does
  std::atomic<int> waiters_ = 0;
  std::atomic<int> callers_ = 0;                         // threads that want to post
  Finished finished_;                                    // to be told when the lock is free
  std::chrono::steady_clock::time_point progressed_at_;  // as far as the progress thread knows
  bool listed_ = false;                                  // the progress thread knows this group
};

}  // namespace unisono::comm
