// Shared state of a benchmark job's ranks, independent of the library under test: a page of memory
// with the row to run and each rank's results.
//
// Ranks that wait for a row sleep on a futex, so an implementation uses no CPU while another one is
// measured. All implementations use the same barrier, clock and pinning, so that only the call
// under test differs.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace unisono::bench {

inline constexpr int kMaxRanks = 64;
inline constexpr int kMaxSamples = 4096;

// Maps DIRECTORY/control, a file of zeros that the report driver creates.
struct ControlBlock {
  alignas(64) std::atomic<std::uint32_t> epoch;  // futex, incremented for each row
  char line[512];                                // the row; written before the epoch
  alignas(64) std::atomic<std::uint32_t> arrived;
  alignas(64) std::atomic<std::uint32_t> generation;
  std::uint64_t start_tick;                      // when the ranks start after the barrier
  alignas(64) std::atomic<std::uint32_t> calls;  // for the next stage, chosen by rank 0
  std::atomic<std::uint32_t> batches;
  struct alignas(64) PerRank {
    std::uint64_t wrong;  // elements that differ from the reference
    double samples_ns[kMaxSamples];
  } ranks[kMaxRanks];
};

class Control {
 public:
  Control(const std::string& directory, int rank, int size);
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();

  // Rank 0 publishes a row and wakes the other ranks, which sleep in await() until then.
  void publish(const std::string& line);
  std::string await();

  // All ranks leave together. align_start: at the same clock tick, if each rank has its own CPU.
  void barrier(bool align_start = false);

  ControlBlock& block() { return *block_; }
  bool oversubscribed() const { return oversubscribed_; }

 private:
  ControlBlock* block_ = nullptr;
  int rank_;
  int size_;
  bool oversubscribed_;
  std::uint32_t seen_epoch_ = 0;
};

// cpu_count() returns the number of CPUs that this process may use. pin_rank() pins `rank` to one
// of them; ranks are spread evenly.
int cpu_count();
void pin_rank(int rank, int size);

// Returns a clock with a resolution of a few nanoseconds: the time stamp counter, if there is one.
std::uint64_t ticks();
double nanoseconds_per_tick();

}  // namespace unisono::bench
