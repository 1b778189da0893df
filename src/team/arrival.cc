#include "team/arrival.h"

#include <algorithm>
#include <thread>

#include "base/relax.h"

namespace unisono::team {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kSpin = 3000;
constexpr auto kYield = std::chrono::microseconds(500);
constexpr auto kNap = std::chrono::microseconds(50);

}  // namespace

ArrivalBarrier::ArrivalBarrier(int threads)
    : lines_(static_cast<std::size_t>(threads)),
      // If there are more threads than processors, a spinning thread would delay threads that have
      // yet to arrive.
      spin_(static_cast<unsigned>(threads) <= std::thread::hardware_concurrency() ? kSpin : 0) {}

ArrivalBarrier::Outcome ArrivalBarrier::await(const std::atomic<std::uint64_t>& word, int thread,
                                              int timeout_ms) noexcept {
  Line& mine = lines_[static_cast<std::size_t>(thread)];
  const std::uint64_t round = mine.entered.load(std::memory_order_relaxed);
  const auto is_there = [&] { return word.load(std::memory_order_acquire) >= round; };
  for (int i = 0; i < spin_; ++i) {
    if (is_there()) {
      return Outcome::all;
    }
    relax();
  }
  const Clock::time_point begin = Clock::now();
  while (!is_there()) {
    if (has_failed()) {
      return Outcome::failed;
    }
    const auto waited = Clock::now() - begin;
    if (timeout_ms > 0 && waited >= std::chrono::milliseconds(timeout_ms)) {
      // If all threads have arrived, their leaders are about to report it.
      mine.missing = first_missing(round);
      if (mine.missing >= 0) {
        return Outcome::late;
      }
    }
    if (waited < kYield) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kNap);
    }
  }
  return Outcome::all;
}

ArrivalBarrier::Outcome ArrivalBarrier::arrive(int thread, int timeout_ms) noexcept {
  const int threads = static_cast<int>(lines_.size());
  const int leader = thread - thread % kDomain;
  Line& mine = lines_[static_cast<std::size_t>(thread)];
  const std::uint64_t round = mine.entered.load(std::memory_order_relaxed) + 1;
  mine.entered.store(round, std::memory_order_release);
  if (has_failed()) {
    return Outcome::failed;
  }
  if (thread != leader) {
    return await(lines_[static_cast<std::size_t>(leader)].released, thread, timeout_ms);
  }
  for (int other = thread + 1; other < std::min(thread + kDomain, threads); ++other) {
    const Outcome outcome =
        await(lines_[static_cast<std::size_t>(other)].entered, thread, timeout_ms);
    if (outcome != Outcome::all) {
      return outcome;
    }
  }
  if (thread != 0) {
    mine.gathered.store(round, std::memory_order_release);
    const Outcome outcome = await(lines_[0].released, thread, timeout_ms);
    if (outcome != Outcome::all) {
      return outcome;
    }
  } else {
    for (int other = kDomain; other < threads; other += kDomain) {
      const Outcome outcome =
          await(lines_[static_cast<std::size_t>(other)].gathered, thread, timeout_ms);
      if (outcome != Outcome::all) {
        return outcome;
      }
    }
  }
  mine.released.store(round, std::memory_order_release);
  return Outcome::all;
}

int ArrivalBarrier::first_missing(std::uint64_t round) const noexcept {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_[i].entered.load(std::memory_order_acquire) < round) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace unisono::team
