// How a rank waits: it spins, then gives way, then sleeps, as its policy says (base/wait_policy.h),
// and looks around while it waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>

#include "base/relax.h"
#include "base/wait_policy.h"
#include "comm/contention.h"

namespace unisono::comm {

// What a rank that waits can notice besides what it waits for, and what it sleeps on. The world is
// one; a test of waiting brings its own.
class Surroundings {
 public:
  virtual const WaitPolicy& wait_policy() const noexcept = 0;
  // What the waits of callers have learnt, and the next ones begin with.
  virtual CoreContention& contention() noexcept = 0;
  virtual bool aborted() const noexcept = 0;
  // Look for what ends every wait, and make aborted() true then.
  virtual void look_for_deaths() noexcept = 0;
  virtual void ask_whether_to_go_on() noexcept = 0;
  // Ends every wait of all ranks, with this reason.
  virtual void raise(const std::exception& error) noexcept = 0;
  virtual int longest_sleep_us() const noexcept = 0;
  // Sleeps until something may have happened; not if `look`, which is asked once more between the
  // announcement of the sleep and the sleep itself, returns true, which this then returns.
  virtual bool sleep(const std::function<bool()>& look, int timeout_us) = 0;

 protected:
  ~Surroundings() = default;
};

// A wait asks often what time it is, and nothing that takes time may have happened since it asked
// last.
class WaitClock {
 public:
  using Clock = std::chrono::steady_clock;

  Clock::time_point now() noexcept { return known_ ? at_ : read(); }
  Clock::time_point read() noexcept {
    known_ = true;
    return at_ = Clock::now();
  }
  // Time passes.
  void forget() noexcept { known_ = false; }

 private:
  Clock::time_point at_;
  bool known_ = false;
};

enum class Polled : std::uint8_t { idle, advanced, finished };

class Waiter {
 public:
  enum class Verdict : std::uint8_t { look_again, finished, aborted, timed_out };

  // timeout_ms 0: none.
  Waiter(Surroundings& around, int timeout_ms) noexcept
      : Waiter(around, timeout_ms, around.wait_policy(), around.contention()) {}
  Waiter(Surroundings& around, int timeout_ms, const WaitPolicy& policy,
         CoreContention& contention) noexcept
      : around_(around), contention_(contention), timeout_ms_(timeout_ms), policy_(policy) {}

  // Asks `poll` (a Polled) until it is finished, or until the wait is aborted or times out: no
  // progress at all for that long. `check` is called now and then for what only shows after a
  // while, such as a mismatch. `poll` may be asked again after it was finished.
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

  // Something happened: start over.
  void reset() noexcept {
    clock_.forget();
    spent_ = 0;
    timing_ = false;  // the timeout is for no progress at all
  }
  // True: look again at once. False: the budget is spent, call pause().
  bool spin() noexcept {
    if (spent_ >= policy_.spin || contention_.is_on()) {
      return false;
    }
    ++spent_;
    clock_.forget();
    relax();
    return true;
  }

  // Gives way or sleeps: look_again, aborted or timed_out. `look` is as of Surroundings::sleep().
  Verdict pause(const std::function<bool()>& look, const std::function<void()>& check);

  double waited_s() const;
  // When the latest poll began, or later: what it found was there then.
  WaitClock::Clock::time_point polled_at() noexcept { return clock_.now(); }

 private:
  using Clock = WaitClock::Clock;

  Surroundings& around_;
  CoreContention& contention_;
  int timeout_ms_;
  WaitPolicy policy_;
  int spent_ = 0;
  bool timing_ = false;
  bool was_slow_ = false;  // giving way was, in this wait
  WaitClock clock_;
  Clock::time_point since_;
  Clock::time_point checked_;
  Clock::time_point asked_;  // the user, whether to go on
};

}  // namespace unisono::comm
