#include "peers/control.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstring>
#include <stdexcept>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace unisono::bench {
namespace {

constexpr int kSpinsBeforeYield = 4000;
constexpr double kStartDelayNs = 1000.0;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  return syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

}  // namespace

int cpu_count() {
  return static_cast<int>(usable_cpus().size());
}

void pin_rank(int rank, int size) {
  const std::vector<int> cpus = usable_cpus();
  if (cpus.empty()) {
    return;
  }
  const std::size_t place =
      static_cast<std::size_t>(rank) * cpus.size() / static_cast<std::size_t>(size);
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpus[place % cpus.size()]), &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::runtime_error("cannot pin a rank to its CPU");
  }
}

std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

double nanoseconds_per_tick() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const std::uint64_t first = ticks();
  while (Clock::now() - begin < std::chrono::milliseconds(20)) {
  }
  const std::uint64_t last = ticks();
  const std::chrono::duration<double, std::nano> elapsed = Clock::now() - begin;
  return elapsed.count() / static_cast<double>(last - first);
}

Control::Control(const std::string& directory, int rank, int size)
    : rank_(rank), size_(size), oversubscribed_(size > cpu_count()) {
  if (size > kMaxRanks) {
    throw std::runtime_error("at most 64 ranks");
  }
  const std::string path = directory + "/control";
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, sizeof(ControlBlock)) != 0) {
    throw std::runtime_error("cannot open " + path);
  }
  void* memory =
      mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) {
    throw std::runtime_error("cannot map " + path);
  }
  block_ = static_cast<ControlBlock*>(memory);
}

Control::~Control() {
  munmap(block_, sizeof(ControlBlock));
}

void Control::publish(const std::string& line) {
  std::strncpy(block_->line, line.c_str(), sizeof block_->line - 1);
  block_->epoch.fetch_add(1);
  futex(block_->epoch, FUTEX_WAKE, INT_MAX);
}

std::string Control::await() {
  while (block_->epoch.load() == seen_epoch_) {
    futex(block_->epoch, FUTEX_WAIT, seen_epoch_);
  }
  ++seen_epoch_;
  return block_->line;
}

void Control::barrier(bool align_start) {
  static const double delay_ticks = kStartDelayNs / nanoseconds_per_tick();
  const std::uint32_t generation = block_->generation.load();
  if (block_->arrived.fetch_add(1) + 1 == static_cast<std::uint32_t>(size_)) {
    block_->arrived.store(0);
    block_->start_tick = ticks() + static_cast<std::uint64_t>(delay_ticks);
    block_->generation.store(generation + 1);
  } else {
    for (int spin = 0; block_->generation.load() == generation; ++spin) {
      if (oversubscribed_ || spin > kSpinsBeforeYield) {
        sched_yield();
      } else {
        relax();
      }
    }
  }
  if (align_start && !oversubscribed_) {
    while (ticks() < block_->start_tick) {
    }
  }
}

}  // namespace unisono::bench
