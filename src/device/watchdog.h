// Detects the events that end a group, which kernels cannot: ranks that have died, stopped, are
// late, or make a different call. Then it tells this rank's kernels to stop.
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

// The words that kernels and their host exchange, in host memory.
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
  // limit_ms: limit of the wait for a rank; 0: none.
  Watchdog(Communicator& comm, const HostWords& words, std::uint32_t channels, int limit_ms);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // Returns the error that has ended the group. Any thread.
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
  std::uint32_t late_ = 0;  // what is waited for: a late_word()
  std::int64_t late_since_ = 0;

  mutable std::mutex mutex_ = {};  // guards the members below
  std::condition_variable changed_ = {};
  std::optional<Error> ended_ = {};
  bool closing_ = false;
  std::thread thread_ = {};
};

}  // namespace unisono::device
