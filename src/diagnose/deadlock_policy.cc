#include "diagnose/deadlock_policy.h"

#include <charconv>
#include <string>
#include <utility>

#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr int kMostAfterMs = 1'000'000'000;
constexpr std::string_view kAfter = "after_ms=";

[[noreturn]] void refuse_policy(std::string_view text, const std::string& what) {
  throw Error(ErrorCode::config, "UNISONO_DEADLOCK=" + std::string(text) + ": " + what +
                                     "\nuse tell, abort or off, for example abort,after_ms=5000");
}

}  // namespace

DeadlockPolicy parse_deadlock_policy(std::string_view text) {
  DeadlockPolicy policy;
  if (text.ends_with(',')) {
    refuse_policy(text, "nothing follows the last comma");
  }
  bool has_action = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(word.size() == rest.size() ? word.size() : word.size() + 1);
    if (word == "tell" || word == "abort" || word == "off") {
      if (std::exchange(has_action, true)) {
        refuse_policy(text, "'" + std::string(word) + "' is a second action");
      }
      policy.action = word == "tell"    ? DeadlockPolicy::Action::tell
                      : word == "abort" ? DeadlockPolicy::Action::abort
                                        : DeadlockPolicy::Action::off;
      continue;
    }
    if (!word.starts_with(kAfter)) {
      refuse_policy(text, "'" + std::string(word) + "' is neither of these nor after_ms=N");
    }
    const std::string_view number = word.substr(kAfter.size());
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), policy.after_ms);
    if (error != std::errc{} || end != number.data() + number.size() || policy.after_ms < 1 ||
        policy.after_ms > kMostAfterMs) {
      refuse_policy(text, "'" + std::string(number) + "' is not a number from 1 to " +
                              std::to_string(kMostAfterMs));
    }
  }
  return policy;
}

}  // namespace unisono::comm
