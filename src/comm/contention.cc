#include "comm/contention.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.h"

namespace unisono::comm {
namespace {

using Clock = CoreContention::Clock;

// Yields that take longer than this suggest contention. One round of yields among eight ranks on
// two cores that only wait for each other takes about 10 us.
constexpr Clock::duration kLongYield = std::chrono::microseconds(200);
// First pause between two probes. A time slice takes about 3 ms.
constexpr Clock::duration kFirstPause = std::chrono::milliseconds(20);
constexpr Clock::duration kLongestPause = std::chrono::milliseconds(500);
// Threads that sleep and wake leave the core only for moments.
constexpr int kCalm = 4;
// If programs seldom take a whole slice, sleeping in every wait would cost more than it saves.
// Linux first divides a core between sessions and containers, so ranks of one session yield quickly
// among themselves until another session's turn comes. Without this rule, every such turn made
// ranks sleep. Measured with four ranks on two cores beside two computing ranks of another session:
// a call of 8 B took 15 us on average with this rule, and 26 us without it.
constexpr int kSeldom = 100;
// A single count of runnable threads may include a launcher or a daemon that woke for a moment.
// With three confirmations, four ranks alone on two cores took 0.96 of the time (43 calls and
// sizes, medians of five, one run).
constexpr int kConfirmed = 3;
// Time for which slices stay short after contention ends. With short slices a yield is quick even
// beside other programs, so contention counts as over only if yields stay quick with the usual
// slices.
constexpr Clock::duration kKept = std::chrono::seconds(1);

}  // namespace

// Parses a line such as "0.81 0.64 0.60 3/512 12345", in which three threads are runnable.
int runnable_threads() noexcept {
  const UniqueFd file(::open("/proc/loadavg", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  if (file.get() < 0 || ::read(file.get(), text.data(), text.size() - 1) <= 0) {
    return 0;
  }
  const char* at = text.data();
  for (int field = 0; field < 3 && at != nullptr; ++field) {
    at = std::strchr(at, ' ');
    at += at != nullptr ? 1 : 0;
  }
  return at == nullptr ? 0 : std::atoi(at);
}

bool CoreContention::gave_way(Clock::time_point from, Clock::time_point to) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (to - from < kLongYield) {
    if (!is_on()) {
      if (own_ > 0 && quick_.load(kRelaxed) < kSeldom) {
        quick_.fetch_add(1, kRelaxed);
      }
      if (to.time_since_epoch().count() >= give_back_at_.load(kRelaxed)) {
        give_back_at_.store(kNever, kRelaxed);
        slices_.give_back();
      }
    } else if (calm_.fetch_add(1, kRelaxed) + 1 >= kCalm) {
      give_back_at_.store((to + kKept).time_since_epoch().count(), kRelaxed);
      on_.store(false, kRelaxed);
    }
    return false;
  }
  const bool is_seldom = quick_.exchange(0, kRelaxed) >= kSeldom;
  if (own_ > 0) {
    const bool are_more = runnable_() > own_;
    const int seen = are_more ? more_.load(kRelaxed) + 1 : 0;
    more_.store(seen, kRelaxed);
    if (!are_more || (!is_on() && (is_seldom || seen < kConfirmed))) {
      return true;
    }
  }
  const Clock::duration pause =
      is_on() ? std::min(2 * Clock::duration(pause_.load(kRelaxed)), kLongestPause) : kFirstPause;
  calm_.store(0, kRelaxed);
  pause_.store(pause.count(), kRelaxed);
  probe_at_.store((to + pause).time_since_epoch().count(), kRelaxed);
  on_.store(true, kRelaxed);
  return true;
}

void CoreContention::shorten_slice() noexcept {
  slices_.take(::gettid());
}

}  // namespace unisono::comm
