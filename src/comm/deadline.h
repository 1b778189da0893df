// Until when to wait.
#pragma once

#include <chrono>
#include <optional>

namespace unisono::comm {

// A point in time, or never.
class Deadline {
 public:
  static Deadline never() { return {}; }
  static Deadline after_ms(int ms);    // exactly
  static Deadline of_timeout(int ms);  // 0: never
  int left_ms() const;                 // for poll(): rounded up, 0 when passed, -1 for never
  bool passed() const { return left_ms() == 0; }
  Deadline later_by_ms(int ms) const;
  static Deadline earlier(const Deadline& a, const Deadline& b);

 private:
  std::optional<std::chrono::steady_clock::time_point> at_;
};

}  // namespace unisono::comm
