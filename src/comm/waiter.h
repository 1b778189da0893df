// How a rank waits: spin, then give way, then sleep, as its policy says; and look around while it
// waits
// (base/wait_policy.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/relax.h"
#include "comm/world.h"

namespace unisono::comm {

class Waiter {
 public:
  // timeout_ms 0: none.
  Waiter(World& world, int timeout_ms) noexcept : Waiter(world, timeout_ms, world.wait_policy()) {}
  Waiter(World& world, int timeout_ms, const WaitPolicy& policy) noexcept
      : world_(world), timeout_ms_(timeout_ms), policy_(policy) {}

  // Something happened: start over.
  void reset() noexcept {
    spent_ = 0;
    timing_ = false;  // the timeout is for no progress at all
  }
  // True: look again at once. False: the budget is spent, call pause().
  bool spin() noexcept {
    if (spent_ >= policy_.spin) {
      return false;
    }
    ++spent_;
    relax();
    return true;
  }

  enum class Verdict : std::uint8_t { look_again, aborted, timed_out };
  // Gives way or sleeps; `look` is asked once more between the announcement of the sleep and the
  // sleep itself (true: something happened). `check` is called now and then for what only shows
  // after a while: deaths, mismatches.
  Verdict pause(const std::function<bool()>& look, const std::function<void()>& check);

  double waited_s() const;

 private:
  using Clock = std::chrono::steady_clock;

  World& world_;
  int timeout_ms_;
  WaitPolicy policy_;
  int spent_ = 0;
  bool timing_ = false;
  Clock::time_point since_;
  Clock::time_point checked_;
  Clock::time_point asked_;  // the user, whether to go on
};

}  // namespace unisono::comm
