#include "comm/waiter.h"

#include <sched.h>

#include <algorithm>

#include "base/asking.h"

namespace unisono::comm {
namespace {

constexpr auto kCheckEvery = std::chrono::milliseconds(1);
constexpr std::chrono::milliseconds kAskEvery(kAskMs);

}  // namespace

Waiter::Verdict Waiter::pause(const std::function<bool()>& look,
                              const std::function<void()>& check) {
  if (around_.aborted()) {
    return Verdict::aborted;
  }
  const auto now = clock_.now();
  if (!timing_) {
    timing_ = true;
    since_ = now;
    checked_ = now;
    asked_ = now;
    was_slow_ = false;
  }
  if (now - checked_ >= kCheckEvery) {
    checked_ = now;
    around_.look_for_deaths();
    check();
    if (now - asked_ >= kAskEvery) {
      asked_ = now;
      around_.ask_whether_to_go_on();
    }
    if (around_.aborted()) {
      return Verdict::aborted;
    }
  }
  // Decides by the clock, not by a count: on a busy machine one yield can cost a whole time slice.
  const bool yields = contention_.is_on() ? contention_.wants_probe(now) : !was_slow_;
  if (yields && now - since_ < std::chrono::microseconds(policy_.yield_us)) {
    sched_yield();
    was_slow_ = contention_.gave_way(now, clock_.read());
    return Verdict::look_again;
  }
  if (contention_.is_on()) {
    contention_.shorten_slice();
  }
  std::int64_t left_us = around_.longest_sleep_us();
  if (timeout_ms_ > 0) {
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(now - since_);
    left_us = std::min<std::int64_t>(left_us, std::int64_t{timeout_ms_} * 1000 - waited.count());
    if (left_us <= 0) {
      return Verdict::timed_out;
    }
  }
  const bool seen = around_.sleep(look, static_cast<int>(left_us));
  clock_.forget();
  if (seen) {
    reset();
  }
  return Verdict::look_again;
}

double Waiter::waited_s() const {
  return timing_ ? std::chrono::duration<double>(Clock::now() - since_).count() : 0.0;
}

}  // namespace unisono::comm
