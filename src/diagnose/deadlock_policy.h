// UNISONO_DEADLOCK: what a rank does about a deadlock that it can prove.
#pragma once

#include <cstdint>
#include <string_view>

namespace unisono::comm {

struct DeadlockPolicy {
  enum class Action : std::uint8_t { off, tell, abort };
  Action action = Action::tell;
  int after_ms = 1000;  // time without progress

  bool on() const noexcept { return action != Action::off; }
  std::int64_t after_ns() const noexcept { return std::int64_t{after_ms} * 1'000'000; }
};

// Parses "tell", "abort" or "off", optionally followed by ",after_ms=1000"; empty: the default.
// Throws config.
DeadlockPolicy parse_deadlock_policy(std::string_view text);

}  // namespace unisono::comm
