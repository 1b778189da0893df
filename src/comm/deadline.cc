#include "comm/deadline.h"

#include <algorithm>
#include <climits>
#include <cstdint>

namespace unisono::comm {

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
  if (!a.at_ || !b.at_) {
    return a.at_ ? a : b;
  }
  return *a.at_ < *b.at_ ? a : b;
}

}  // namespace unisono::comm
