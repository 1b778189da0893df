// An emulated link, in a thread: it relays bytes between two connected sockets, with the requested
// disturbances.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "chaos/flow.h"

namespace unisono::chaos {

struct RelayOptions {
  Options link = {};
  Damage damage = {};            // from the first to the second
  std::int64_t mute_after = -1;  // bytes from the first; then nothing passes, and nothing ends
  // Sees all bytes as they pass, in the relay's thread.
  std::function<void(std::span<const std::byte>)> tap = {};
};

class Relay {
 public:
  // The sockets shall not block.
  Relay(UniqueFd first, UniqueFd second, RelayOptions options);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay();

  // Both sides are reset.
  void reset() { resets_ = true; }
  // Nothing will pass any more, because both sides have ended or were reset.
  bool is_over() const { return over_; }
  // Bytes that came in from the first.
  std::uint64_t passed() const { return passed_; }

 private:
  struct Way {
    int from;
    int to;
    Flow flow;
    bool ended = false;  // `from` says nothing more
    bool told = false;   // and `to` has heard of it
  };
  void run();
  void take(Way& way, std::int64_t now_us);
  static void give(Way& way, std::int64_t now_us);
  void wait(std::int64_t now_us);
  void break_off();

  UniqueFd first_;
  UniqueFd second_;
  RelayOptions options_;
  std::array<Way, 2> ways_;
  std::atomic<bool> stops_ = false;
  std::atomic<bool> resets_ = false;
  std::atomic<bool> over_ = false;
  std::atomic<std::uint64_t> passed_ = 0;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(64 << 10);
  std::thread thread_;
};

}  // namespace unisono::chaos
