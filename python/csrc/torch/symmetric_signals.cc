#include "symmetric_signals.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <ctime>

#include "base/relax.h"
#include "common/signals.h"
#include "unisono/error.hpp"

namespace unisono_torch {
namespace {

using unisono::Error;
using unisono::ErrorCode;
using Clock = std::chrono::steady_clock;

constexpr int kLooks = 200;  // polls before sleeping
// Maximum sleep, because a program may write signals itself without waking the waiter.
constexpr timespec kLongestSleep{.tv_sec = 0, .tv_nsec = 1'000'000};
constexpr std::chrono::milliseconds kLookAround{20};

std::string time_of_day(std::chrono::system_clock::time_point at) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[16];
  std::strftime(text, sizeof(text), "%H:%M:%S", &local);
  return text;
}

std::string number(int rank) {
  return "rank " + std::to_string(rank);
}

}  // namespace

struct Signals::Limit {
  explicit Limit(std::size_t ms) : timeout_ms(ms) {}
  bool has_passed() const {
    return timeout_ms != 0 && Clock::now() - since >= std::chrono::milliseconds(timeout_ms);
  }
  std::size_t timeout_ms;
  Clock::time_point since = Clock::now();
  std::chrono::system_clock::time_point at = std::chrono::system_clock::now();
};

void wake_waiters(std::uint32_t* word) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint32_t* Signals::word(int of, int from, int channel) const {
  auto* words = reinterpret_cast<std::uint32_t*>(ranks_[static_cast<std::size_t>(of)].pad);
  return words + static_cast<std::size_t>(channel) * ranks_.size() + static_cast<std::size_t>(from);
}

void Signals::check(int peer, int channel) const {
  if (peer < 0 || static_cast<std::size_t>(peer) >= ranks_.size()) {
    throw Error(ErrorCode::usage, number(peer) + " is not a rank of this symmetric memory of " +
                                      std::to_string(ranks_.size()) + " ranks");
  }
  const std::size_t channels = pad_bytes_ / sizeof(std::uint32_t) / ranks_.size();
  if (channel < 0 || static_cast<std::size_t>(channel) >= channels) {
    throw Error(ErrorCode::usage,
                "channel " + std::to_string(channel) + " of symmetric memory; with " +
                    std::to_string(ranks_.size()) + " ranks its pad of " +
                    std::to_string(pad_bytes_) + " bytes has " + std::to_string(channels) +
                    " channels\ncall set_signal_pad_size() before the memory is allocated");
  }
}

void Signals::look(What what, int peer, int channel, const Limit& limit) const {
  unisono_signals::throw_if_interrupted();
  const SignalRank& other = ranks_[static_cast<std::size_t>(peer)];
  const std::string in = " (symmetric memory, channel " + std::to_string(channel) + ")";
  const std::string doing = what == What::barrier ? number(rank_) + " is in a barrier with it"
                            : what == What::put   ? number(rank_) + " signals it"
                                                  : number(rank_) + " waits for its signal";
  if (const std::string end = other.end(); !end.empty()) {
    throw Error(ErrorCode::peer_lost,
                number(peer) + " " + end + " while " + doing + in +
                    "\nlook at the last output of that rank",
                {.rank = rank_, .peer = peer});
  }
  if (limit.has_passed()) {
    const char* const missing = what == What::barrier ? " has not come to the barrier of "
                                : what == What::put   ? " has not taken the last signal of "
                                                      : " has not signalled ";
    throw Error(ErrorCode::timeout,
                number(peer) + missing + number(rank_) + " within " +
                    std::to_string(limit.timeout_ms) + " ms, since " + time_of_day(limit.at) + in +
                    (other.is_stopped() ? "; its process is stopped" : ""),
                {.rank = rank_, .peer = peer});
  }
}

void Signals::turn(What what, int of, int from, int channel, std::uint32_t expected,
                   const Limit& limit) {
  std::uint32_t* const at = word(of, from, channel);
  std::atomic_ref<std::uint32_t> signal(*at);
  const int peer = of == rank_ ? from : of;
  auto next_look = Clock::now() + kLookAround;
  for (int looks = 0;; ++looks) {
    std::uint32_t seen = expected;
    if (signal.compare_exchange_strong(seen, 1 - expected, std::memory_order_acq_rel)) {
      wake_waiters(at);
      return;
    }
    if (looks < kLooks) {
      unisono::relax();
      continue;
    }
    syscall(SYS_futex, at, FUTEX_WAIT, seen, &kLongestSleep, nullptr, 0);
    if (limit.has_passed() || Clock::now() >= next_look) {
      look(what, peer, channel, limit);
      next_look = Clock::now() + kLookAround;
    }
  }
}

void Signals::put(int to, int channel, std::size_t timeout_ms) {
  check(to, channel);
  turn(What::put, to, rank_, channel, 0, Limit(timeout_ms));
}

void Signals::wait(int from, int channel, std::size_t timeout_ms) {
  check(from, channel);
  turn(What::wait, rank_, from, channel, 1, Limit(timeout_ms));
}

void Signals::barrier(int channel, std::size_t timeout_ms) {
  check(rank_, channel);
  const Limit limit(timeout_ms);
  const int size = static_cast<int>(ranks_.size());
  for (int step = 1; step < size; ++step) {
    turn(What::barrier, (rank_ + step) % size, rank_, channel, 0, limit);
  }
  for (int step = 1; step < size; ++step) {
    turn(What::barrier, rank_, (rank_ + size - step) % size, channel, 1, limit);
  }
}

}  // namespace unisono_torch
