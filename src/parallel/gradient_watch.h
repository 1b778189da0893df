// Reports that the next gradient of a backward pass is overdue. A separate thread reports it,
// because the caller's code on the rank that must compute the gradient may never return.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace unisono::parallel {

class GradientWatch {
 public:
  // `late`: called once by the thread, with the mutex held. limit 0: never.
  GradientWatch(std::chrono::milliseconds limit, std::function<void()> late)
      : limit_(limit), late_(std::move(late)) {}
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;
  ~GradientWatch() {
    if (thread_.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        ending_ = true;
      }
      changed_.notify_one();
      thread_.join();
    }
  }

  // Changes the state that `late` uses. `expects`: the next gradient is due within the limit from
  // now on.
  template <typename Change>
  void change(bool expects, const Change& change) {
    const std::lock_guard lock(mutex_);
    change();
    if (limit_.count() == 0 || (!expects && !due_)) {
      return;
    }
    // A later deadline needs no wake-up: the thread checks again when the old one passes.
    const bool sleeps_without = !due_.has_value();
    due_ = expects ? std::optional(Clock::now() + limit_) : std::nullopt;
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { run(); });
    } else if (sleeps_without) {
      changed_.notify_one();
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  void run() {
    std::unique_lock lock(mutex_);
    while (!ending_) {
      if (!due_) {
        changed_.wait(lock);
      } else if (Clock::now() < *due_) {
        changed_.wait_until(lock, Clock::time_point(*due_));
      } else {
        due_.reset();
        late_();
      }
    }
  }

  const std::chrono::milliseconds limit_;
  const std::function<void()> late_;
  std::condition_variable changed_;
  std::mutex mutex_;  // guards the members below, and the state that change() modifies
  std::optional<Clock::time_point> due_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace unisono::parallel
