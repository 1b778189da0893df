// The waiting policy of a rank: it polls a number of times, then yields to other threads between
// two polls for some time, then sleeps until it is woken.
#pragma once

#include <string>
#include <string_view>

namespace unisono {

inline constexpr int kMostWait = 1'000'000'000;  // limit for `spin` and `yield_us`

struct WaitPolicy {
  int spin = 3000;  // polls, one CPU pause apart
  int yield_us = 500;

  friend auto operator<=>(const WaitPolicy&, const WaitPolicy&) = default;
};

// Returns the default policy. `oversubscribed`: there are more ranks than CPUs, so the peer may
// need this core. A scheduling turn of eight ranks on two cores takes about 10 us; a rank that
// waits much longer leaves the core to others.
constexpr WaitPolicy built_in_wait(bool oversubscribed) {
  return {.spin = oversubscribed ? 0 : 3000, .yield_us = 500};
}

// Returns text such as "spin=3000,yield_us=500".
std::string to_text(const WaitPolicy& policy);
// Parses a policy. Settings missing from the text are taken from `usual`. Throws Error(config).
WaitPolicy parse_wait_policy(std::string_view text, WaitPolicy usual);

}  // namespace unisono
