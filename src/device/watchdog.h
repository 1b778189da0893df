// Looks for what ends a group, which kernels cannot: ranks that have died or say that they stop,
// are late, or mean another call. Then it tells the kernels of this rank to stop.
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

// What kernels and their host say to each other, in memory of the host.
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
  // limit_ms: of a rank that is waited for; 0: none.
  Watchdog(Communicator& comm, const HostWords& words, std::uint32_t channels, int limit_ms);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // What has ended the group. Any thread.
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

  mutable std::mutex mutex_ = {};  // guards what follows
  std::condition_variable changed_ = {};
  std::optional<Error> ended_ = {};
  bool closing_ = false;
  std::thread thread_ = {};
};

}  // namespace unisono::device
