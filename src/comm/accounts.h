// Counts the costs of a group's calls on this rank (unisono/statistics.hpp), and publishes the
// counts in the group's shared memory.
//
// A short call reads no clock: only one call in 64 is timed, and idle polls count as a wait only if
// there are several in a row. One thread at a time writes; any thread may read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bootstrap/host_memory.h"
#include "comm/call_totals.h"
#include "diagnose/flight_recorder.h"
#include "unisono/statistics.hpp"
#include "unisono/types.hpp"

namespace unisono::comm {

class Accounts {
 public:
  // Number of consecutive idle polls that count as a wait. A spinning rank polls again within a
  // fraction of a microsecond; a rank that yields may lose the processor between two polls.
  static constexpr std::uint64_t kPatient = 8;
  static constexpr std::uint64_t kOversubscribed = 1;

  // `members` are world ranks. `members` and `shown` must outlive this object.
  Accounts(const std::vector<int>& members, const PublishedCosts& shown, std::uint64_t noticed)
      : members_(members), shown_(shown), noticed_(noticed) {}
  Accounts(const Accounts&) = delete;
  Accounts& operator=(const Accounts&) = delete;
  ~Accounts();

  // Begins a call. `blocking` means that the caller does nothing else until end(). For a receive,
  // `bytes` is the room for its message, which add_received() counts. Throws std::bad_alloc at the
  // first call of a kind.
  void begin(int kind, std::size_t bytes, bool blocking) {
    CallTotals* totals = totals_[kind].load(std::memory_order_relaxed);
    if (totals == nullptr) {
      totals = open(kind);
    }
    current_ = totals;
    totals->add_call(kind == kRecvKind ? 0 : bytes);
    idle_polls_ = 0;
    waited_ns_ = 0;
    begun_ns_ = 0;
    if (blocking) {
      begin_timing(bytes);
    }
  }
  // Counts a poll that found nothing to do. missing() returns the group rank that the call waits
  // for, or -1. It is called only occasionally, because the answer may be in other ranks' caches.
  // now_ns() is called only when the time is needed.
  template <typename Missing, typename Now>
  void idle(const Missing& missing, const Now& now_ns) noexcept {
    ++idle_polls_;
    const bool is_asked = idle_polls_ % kAskEvery == 0 || (idle_polls_ & (idle_polls_ - 1)) == 0;
    if (idle_polls_ >= noticed_ && is_asked) {
      note(missing(), now_ns());
    }
  }
  template <typename Now>
  void advanced(const Now& now_ns) noexcept {
    if (idle_polls_ != 0) {
      end_wait(now_ns());
    }
  }
  // Counts the bytes of a message that a receive has got.
  void add_received(std::size_t bytes) noexcept {
    totals_[kRecvKind].load(std::memory_order_relaxed)->add_bytes(bytes);
  }
  // Ends the call, successful or not.
  void end() noexcept {
    advanced(flight_clock_ns);
    if (waited_ns_ != 0 || begun_ns_ != 0) {
      settle();
    }
  }

  // Adds rows. Any thread.
  void read(Statistics& statistics) const;

 private:
  static constexpr std::uint64_t kAskEvery = 16;
  static constexpr std::size_t kLongBytes = std::size_t{32} << 10;

  void begin_timing(std::size_t bytes) noexcept {
    is_long_ = bytes >= kLongBytes;
    if (is_long_ || current_->add_short_call()) {
      begun_ns_ = flight_clock_ns();
    }
  }
  CallTotals* open(int kind);
  void note(int missing, std::int64_t now_ns) noexcept;
  void end_wait(std::int64_t now_ns) noexcept;
  void charge(std::int64_t now_ns) noexcept;
  void settle() noexcept;

  const std::vector<int>& members_;
  const PublishedCosts& shown_;
  const std::uint64_t noticed_;
  std::atomic<CallTotals*> totals_[kCallKinds] = {};  // owned
  // State of the current call.
  CallTotals* current_ = nullptr;
  std::uint64_t idle_polls_ = 0;  // in a row
  int missing_ = -1;              // the rank that it waits for
  std::int64_t since_ns_ = 0;
  std::uint64_t waited_ns_ = 0;
  std::int64_t begun_ns_ = 0;  // 0: not timed
  bool is_long_ = false;
  std::unique_ptr<std::uint64_t[]> by_rank_ns_;  // [rank of the group], over all kinds
  std::uint64_t most_ns_ = 0;
};

}  // namespace unisono::comm
