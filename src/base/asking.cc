#include "base/asking.h"

#include <chrono>
#include <utility>

namespace unisono {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetween(kAskMs);

}  // namespace

std::function<bool()> ten_times_a_second(std::function<bool()> question) {
  if (question == nullptr) {
    return nullptr;
  }
  return [question = std::move(question), next = Clock::now() + kBetween]() mutable {
    const Clock::time_point now = Clock::now();
    if (now < next) {
      return false;
    }
    next = now + kBetween;
    return question();
  };
}

}  // namespace unisono
