// Two-level barrier for the threads of a rank: groups of eight threads, then the group leaders.
// Each thread writes only its own cache lines. A waiting thread gives up when the team has failed,
// or when a thread has not arrived in time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace unisono::team {

class ArrivalBarrier {
 public:
  enum class Outcome : std::uint8_t { all, failed, late };

  explicit ArrivalBarrier(int threads);

  // Waits for all threads; every thread must call it. timeout_ms 0: no limit.
  Outcome arrive(int thread, int timeout_ms) noexcept;
  // Ends all current and future waits.
  void fail() noexcept { failed_.store(true, std::memory_order_release); }
  bool has_failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  // Returns the first thread that had not arrived, after an Outcome::late. `thread` is the caller.
  int missing(int thread) const noexcept {
    return lines_[static_cast<std::size_t>(thread)].missing;
  }

 private:
  static constexpr int kDomain = 8;  // threads that probably share a cache
  struct alignas(64) Line {
    std::atomic<std::uint64_t> entered{0};   // rounds that this thread has entered
    std::atomic<std::uint64_t> gathered{0};  // leaders: rounds that their whole group has entered
    std::atomic<std::uint64_t> released{0};  // leaders: completed rounds
    int missing = -1;                        // this thread's own
  };

  // `thread` waits until `word` has reached its round.
  Outcome await(const std::atomic<std::uint64_t>& word, int thread, int timeout_ms) noexcept;
  int first_missing(std::uint64_t round) const noexcept;

  std::vector<Line> lines_;
  int spin_;
  alignas(64) std::atomic<bool> failed_{false};
};

}  // namespace unisono::team
