// Ends waits at a point in time, or earlier if the caller interrupts them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace unisono {

// A point in time, or never.
class Deadline {
 public:
  static Deadline never() { return {}; }
  static Deadline after_ms(int ms);    // exactly
  static Deadline of_timeout(int ms);  // 0: never
  int left_ms() const;                 // rounded up, 0 when passed, -1 for never
  bool passed() const { return left_ms() == 0; }
  Deadline later_by_ms(int ms) const;
  static Deadline earlier(const Deadline& a, const Deadline& b);

  // Returns this deadline for waits that ConnectOptions::interrupted may end. `interrupted` must
  // outlive the returned object.
  Deadline asking(const std::function<bool()>& interrupted) const;
  bool asks() const { return interrupted_ != nullptr; }
  int poll_ms() const;  // limit for one poll(): left_ms(), at most kAskMs if asks()
  bool is_interrupted() const;
  void throw_if_interrupted() const;  // throws Error(aborted)

 private:
  std::optional<std::chrono::steady_clock::time_point> at_;
  const std::function<bool()>* interrupted_ = nullptr;
};

}  // namespace unisono
