// The asynchronous operations of a group. Operations are queued here. A waiting thread drives them;
// if no thread waits, the world's progress thread does.
//
// Collectives run one after another in the order of the calls, which is the same on all ranks.
// While nothing asynchronous is pending, a blocking call runs in its own thread, without the queue
// and without a lock.
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

  // Both must outlive this object.
  CallQueue(Group& group, Operations& operations) : group_(group), operations_(operations) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;
  ~CallQueue();

  class Alone;
  class Planning;

  // Sends a short message that can be sent now. Returns false if post() must send it.
  bool send_now(PendingTransfer& transfer);
  // `request` must live until it is done.
  void post(RequestState& request);
  void wait(RequestState& request, int timeout_ms) override;
  void drop(RequestState& request) noexcept override;
  bool test(RequestState& request) override;
  void on_done(RequestState& request, std::function<void(const Error*)> tell) override;
  detail::Received received(const RequestState& request) const override;
  [[noreturn]] void refuse_second_thread() const;
  // Returns the time limit of a call with this `timeout_ms`; a negative value selects the world's
  // limit.
  int effective_timeout(int timeout_ms) const;

 private:
  class Waiting;
  // As wait(), but does not throw the error that ended the operation.
  void await(RequestState& request, int timeout_ms);
  // Counts an operation as pending. Throws if a blocking call runs alone.
  void announce(const std::atomic<bool>& used);
  std::atomic<bool>& used_by(Fabric::Use use) {
    return use == Fabric::Use::collectives ? collecting_ : transferring_;
  }
  std::unique_lock<std::mutex> lock_to_post();
  void count_out(const RequestState& request);
  void start(RequestState& request);
  void start_transfer(RequestState& request);
  // Advances everything pending by one poll. REQUIRES: driving_ is held.
  bool drive();
  bool drive_all();
  bool drive_collectives();
  bool drive_transfers();
  void take_finished();
  void wake_progress();
  bool drive_and_tell();  // takes the lock itself
  int pending() const noexcept override { return pending_.load(std::memory_order_relaxed); }
  bool wants_driving() const noexcept override {
    return pending_.load() != 0 && waiters_.load() == 0;
  }
  bool drive_pending(Finished& finished) override;
  void look_around_pending() override;
  void check_deadlines();
  void complete(RequestState& request, std::unique_ptr<Error> error);
  void fail_all();

  Group& group_;
  Operations& operations_;
  std::mutex driving_;  // guards the operations and all members below while pending_ is not 0
  std::deque<RequestState*> queue_;    // collectives; the first one runs
  bool running_ = false;               // the first has begun
  std::vector<RequestState*> moving_;  // sends and receives
  // Lower bound of the time limits in moving_ (0: no limits). It is not raised when an operation
  // ends.
  int least_limit_ms_ = 0;
  std::atomic<int> pending_ = 0;            // changed only under driving_
  std::atomic<int> urgent_ = 0;             // pending operations that need the progress thread now
  std::atomic<bool> collecting_ = false;    // a blocking collective runs alone
  std::atomic<bool> transferring_ = false;  // a blocking send or recv runs alone
  std::atomic<int> waiters_ = 0;
  std::atomic<int> callers_ = 0;  // threads that want to post
  Finished finished_;             // callbacks to run once the lock is free
  // True if something has progressed since the progress thread set progressed_at_.
  std::atomic<bool> has_progressed_ = false;
  std::chrono::steady_clock::time_point progressed_at_;
  bool listed_ = false;  // the progress thread lists this group
};

// A blocking call that runs alone: nothing asynchronous is pending, and a call that another
// thread makes meanwhile is refused. A collective and a transfer may run at the same time,
// because they share only the world. Converts to false if the call must be posted instead.
class CallQueue::Alone {
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

// Counts a planning thread as pending, because a blocking call uses the planner without the lock.
class CallQueue::Planning {
 public:
  explicit Planning(CallQueue& queue);
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;
  ~Planning() { queue_.pending_.fetch_sub(1, std::memory_order_release); }

 private:
  CallQueue& queue_;
  std::lock_guard<std::mutex> lock_;
};

}  // namespace unisono::comm
