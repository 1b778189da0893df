#include "base/wait_policy.h"

#include <charconv>

#include "unisono/error.hpp"

namespace unisono {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& what) {
  throw Error(ErrorCode::config, "UNISONO_WAIT=" + std::string(text) + ": " + what +
                                     "\nfor example spin=3000,yield_us=500; spin=0,yield_us=0 "
                                     "sleeps at once");
}

}  // namespace

std::string to_text(const WaitPolicy& policy) {
  return "spin=" + std::to_string(policy.spin) + ",yield_us=" + std::to_string(policy.yield_us);
}

WaitPolicy parse_wait_policy(std::string_view text, WaitPolicy usual) {
  WaitPolicy policy = usual;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest = word.size() == rest.size() ? std::string_view{} : rest.substr(word.size() + 1);
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (equals == std::string_view::npos || (name != "spin" && name != "yield_us")) {
      refuse(text, "'" + std::string(word) + "' is neither spin=N nor yield_us=N");
    }
    const std::string_view number = word.substr(equals + 1);
    int value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc{} || end != number.data() + number.size() || value < 0 ||
        value > kMostWait) {
      refuse(text, "'" + std::string(number) + "' is not a number from 0 to " +
                       std::to_string(kMostWait));
    }
    (name == "spin" ? policy.spin : policy.yield_us) = value;
  }
  return policy;
}

}  // namespace unisono
