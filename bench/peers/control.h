// The shared state of a benchmark job's ranks, apart from the library under test: a page of memory
// with the row to run, and each rank's results.
//
// Ranks that wait for a row sleep on a futex: while another implementation is measured, this one
// takes no CPU, whatever its own waits look like. All implementations use the same barrier, clock
// and pinning, so that only the call under test differs.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace unisono::bench {

inline constexpr int kMaxRanks = 64;
inline constexpr int kMaxSamples = 4096;

// A mapping of DIRECTORY/control, made by the report driver as a file of zeros.
struct ControlBlock {
  alignas(64) std::atomic<std::uint32_t> epoch;  // futex: one more for each row
  char line[512];                                // the row, written before the epoch
  alignas(64) std::atomic<std::uint32_t> arrived;
  alignas(64) std::atomic<std::uint32_t> generation;
  std::uint64_t start_tick;  // when the ranks that the barrier let go shall begin
  alignas(64) std::atomic<std::uint32_t> calls;  // rank 0's choice for the next stage
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

  // Rank 0: publishes a row and wakes the others. Others: sleep until there is one.
  void publish(const std::string& line);
  std::string await();

  // All ranks leave together: at one tick of the clock where each rank has a CPU of its own.
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

// The CPUs this process may use, and the one that `rank` of `size` gets: ranks spread evenly.
int cpu_count();
void pin_rank(int rank, int size);

// A clock of a few nanoseconds: the time stamp counter where there is one.
std::uint64_t ticks();
double nanoseconds_per_tick();

}  // namespace unisono::bench
