// Detects problems that kernels cannot detect: ranks that have died, have stopped, are late, or
// make a different call. Then ends the group and stops this rank's kernels.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "device/image.h"
#include "unisono/error.hpp"

namespace unisono {

class Communicator;

}  // namespace unisono

namespace unisono::device {

class Context;

// Words in host memory through which kernels and their host communicate.
class HostWords {
 public:
  HostWords(const Context& context, std::uint32_t channels);
  HostWords(const HostWords&) = delete;
  HostWords& operator=(const HostWords&) = delete;
  ~HostWords();

  std::uint32_t* stop() const noexcept { return stop_; }
  Status* status() const noexcept { return status_; }

 private:
  const Context& context_;
  std::uint32_t* stop_ = nullptr;
  Status* status_ = nullptr;  // [channel]
};

class Watchdog {
 public:
  // limit_ms: how long to wait for a rank; 0: no limit.
  Watchdog(Communicator& comm, const HostWords& words, std::uint32_t channels, int limit_ms);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // Returns the error that has ended the group, if any. May be called by any thread.
  std::optional<Error> ended() const;
  void set_limit(int limit_ms) noexcept { limit_ms_ = limit_ms; }

 private:
  void watch();
  void look();
  std::optional<Error> mismatch() const;
  std::optional<Error> lateness();
  void end(const Error& why);

  Communicator& comm_;
  const HostWords& words_;
  std::uint32_t channels_;
  std::atomic<int> limit_ms_;
  std::uint32_t late_ = 0;  // late_word() of the current wait
  std::int64_t late_since_ = 0;

  mutable std::mutex mutex_ = {};  // guards the members below
  std::condition_variable changed_ = {};
  std::optional<Error> ended_ = {};
  bool closing_ = false;
  std::thread thread_ = {};
};

}  // namespace unisono::device
