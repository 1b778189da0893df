#include "base/deadline.h"

#include <algorithm>
#include <climits>
#include <cstdint>

#include "base/asking.h"
#include "unisono/error.hpp"

namespace unisono {

Deadline Deadline::after_ms(int ms) {
  Deadline deadline;
  deadline.at_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  return deadline;
}

Deadline Deadline::of_timeout(int ms) {
  return ms == 0 ? never() : after_ms(ms);
}

int Deadline::left_ms() const {
  if (!at_) {
    return -1;
  }
  const auto left = *at_ - std::chrono::steady_clock::now();
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(ms, 0, INT_MAX));
}

Deadline Deadline::later_by_ms(int ms) const {
  Deadline later = *this;
  if (later.at_) {
    *later.at_ += std::chrono::milliseconds(ms);
  }
  return later;
}

Deadline Deadline::earlier(const Deadline& a, const Deadline& b) {
  Deadline first = !b.at_ || (a.at_ && *a.at_ < *b.at_) ? a : b;
  first.interrupted_ = a.interrupted_ != nullptr ? a.interrupted_ : b.interrupted_;
  return first;
}

Deadline Deadline::asking(const std::function<bool()>& interrupted) const {
  Deadline deadline = *this;
  deadline.interrupted_ = interrupted == nullptr ? nullptr : &interrupted;
  return deadline;
}

int Deadline::poll_ms() const {
  const int ms = left_ms();
  return interrupted_ == nullptr ? ms : ms < 0 ? kAskMs : std::min(ms, kAskMs);
}

bool Deadline::is_interrupted() const {
  return interrupted_ != nullptr && (*interrupted_)();
}

void Deadline::throw_if_interrupted() const {
  if (is_interrupted()) {
    throw Error(ErrorCode::aborted, "the rendezvous of the ranks was interrupted");
  }
}

}  // namespace unisono
