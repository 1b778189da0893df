// Waits for operations: spins, then yields, then sleeps, according to the policy
// (base/wait_policy.h), and watches the world meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>

#include "base/relax.h"
#include "base/wait_policy.h"
#include "comm/contention.h"

namespace unisono::comm {

// The environment of a waiting rank: events that can end the wait early, and the object that the
// rank sleeps on. World implements it; tests have their own implementations.
class WaitEnvironment {
 public:
  virtual const WaitPolicy& wait_policy() const noexcept = 0;
  // Returns what earlier waits have learnt about contention.
  virtual CoreContention& contention() noexcept = 0;
  virtual bool aborted() const noexcept = 0;
  // Looks for events that end every wait. If there is one, aborted() returns true afterwards.
  virtual void look_for_deaths() noexcept = 0;
  virtual void ask_whether_to_go_on() noexcept = 0;
  // Ends every wait on all ranks, with this reason.
  virtual void raise(const std::exception& error) noexcept = 0;
  virtual int longest_sleep_us() const noexcept = 0;
  // Announces the sleep, calls look() once more, and sleeps unless it returned true. Returns what
  // look() returned.
  virtual bool sleep(const std::function<bool()>& look, int timeout_us) = 0;

 protected:
  ~WaitEnvironment() = default;
};

// Caches the time between two polls, because a wait asks for the time often.
class WaitClock {
 public:
  using Clock = std::chrono::steady_clock;

  Clock::time_point now() noexcept { return known_ ? at_ : read(); }
  Clock::time_point read() noexcept {
    known_ = true;
    return at_ = Clock::now();
  }
  // Forgets the cached time.
  void forget() noexcept { known_ = false; }

 private:
  Clock::time_point at_;
  bool known_ = false;
};

enum class Polled : std::uint8_t { idle, advanced, finished };

class Waiter {
 public:
  enum class Verdict : std::uint8_t { look_again, finished, aborted, timed_out };

  // timeout_ms 0 means no limit.
  Waiter(WaitEnvironment& around, int timeout_ms) noexcept
      : Waiter(around, timeout_ms, around.wait_policy(), around.contention()) {}
  Waiter(WaitEnvironment& around, int timeout_ms, const WaitPolicy& policy,
         CoreContention& contention) noexcept
      : around_(around), contention_(contention), timeout_ms_(timeout_ms), policy_(policy) {}

  // Calls `poll` (which returns a Polled) until it has finished, the wait is aborted, or no
  // progress has been made for the timeout. `check` is called occasionally and looks for errors
  // that appear only after a while, such as a mismatch. `poll` may be called again after it has
  // finished.
  template <typename Poll, typename Check>
  Verdict wait(const Poll& poll, const Check& check) {
    for (;;) {
      const Polled polled = poll();
      if (polled == Polled::finished) {
        return Verdict::finished;
      }
      if (polled == Polled::advanced) {
        reset();
        continue;
      }
      if (spin()) {
        continue;
      }
      const Verdict verdict = pause([&] { return poll() != Polled::idle; }, check);
      if (verdict != Verdict::look_again) {
        return verdict;
      }
    }
  }

  // Restarts the policy and the timeout, because progress was made.
  void reset() noexcept {
    clock_.forget();
    spent_ = 0;
    timing_ = false;  // the timeout counts from the last progress
  }
  // Returns true if the caller should poll again at once. Returns false if the spin budget is used
  // up; the caller must then call pause().
  bool spin() noexcept {
    if (spent_ >= policy_.spin || contention_.is_on()) {
      return false;
    }
    ++spent_;
    clock_.forget();
    relax();
    return true;
  }

  // Yields or sleeps. Returns look_again, aborted or timed_out. `look` is the argument of
  // WaitEnvironment::sleep().
  Verdict pause(const std::function<bool()>& look, const std::function<void()>& check);

  double waited_s() const;
  // Returns the time of the latest progress. REQUIRES: the caller is `check`.
  WaitClock::Clock::time_point since() const noexcept { return since_; }
  // Returns a time at or after the start of the latest poll.
  WaitClock::Clock::time_point polled_at() noexcept { return clock_.now(); }

 private:
  using Clock = WaitClock::Clock;

  WaitEnvironment& around_;
  CoreContention& contention_;
  int timeout_ms_;
  WaitPolicy policy_;
  int spent_ = 0;
  bool timing_ = false;
  bool was_slow_ = false;  // a yield in this wait was slow
  WaitClock clock_;
  Clock::time_point since_;
  Clock::time_point checked_;
  Clock::time_point asked_;  // when ConnectOptions::interrupted was last called
};

}  // namespace unisono::comm
