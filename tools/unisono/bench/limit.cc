#include "bench/limit.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/timing.h"
#include "schedule/schedule.h"

namespace unisono::cli {
namespace {

constexpr int kRoundTrips = 2000;
constexpr int kRepeats = 5;

double now_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

struct alignas(64) Line {
  std::atomic<int> value{0};
};

// Threads on the first and the last CPU of the machine that they may use; the launcher binds each
// rank to one, which a thread may undo for itself.
double ping_pong(int first, int last) {
  Line there;
  Line back;
  std::atomic<bool> pinned{true};
  double best = 0;
  std::thread echo([&] {
    pinned = pin(last);
    for (int i = 1; i <= kRoundTrips * kRepeats; ++i) {
      while (there.value.load(std::memory_order_acquire) != i) {
      }
      back.value.store(i, std::memory_order_release);
    }
  });
  std::thread caller([&] {
    const bool here = pin(first);
    int i = 0;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const double start = now_us();
      for (int trip = 0; trip < kRoundTrips; ++trip) {
        there.value.store(++i, std::memory_order_release);
        while (back.value.load(std::memory_order_acquire) != i) {
        }
      }
      const double one_way = (now_us() - start) / (2.0 * kRoundTrips);
      best = repeat == 0 ? one_way : std::min(best, one_way);
    }
    pinned = pinned && here;
  });
  echo.join();
  caller.join();
  return pinned ? best : 0;
}

}  // namespace

double measure_hop_us() {
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  return online < 2 ? 0 : ping_pong(0, static_cast<int>(online) - 1);
}

Limit::Limit(Communicator& comm) : comm_(comm) {
  comm.barrier();
  const double mine = comm.size() > 1 && comm.rank() == 0 ? measure_hop_us() : 0;
  hop_us_ = gather_numbers(comm, {mine}).front().front();
}

double Limit::copy_us(std::uint64_t bytes, bool alone) {
  const auto found = copies_.find({bytes, alone});
  if (found != copies_.end()) {
    return found->second;
  }
  const bool copies = bytes != 0 && (!alone || comm_.rank() == 0);
  std::vector<std::byte> from(copies ? bytes : 0, std::byte{1});
  std::vector<std::byte> to(copies ? bytes : 0, std::byte{2});
  const int calls = static_cast<int>(std::clamp<std::uint64_t>((1 << 20) / (bytes + 1), 1, 1000));
  std::vector<double> times;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    comm_.barrier();
    const double start = now_us();
    for (int i = 0; copies && i < calls; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      // The copy is used: a compiler may not leave it out.
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    times.push_back((now_us() - start) / calls);
  }
  double slowest = 0;
  for (const auto& theirs : gather_numbers(comm_, times)) {
    slowest = std::max(slowest, quantile(theirs, 0.5));
  }
  return copies_[{bytes, alone}] = slowest;
}

double Limit::time_us(const Case& row, const Layout& layout) {
  if (comm_.size() == 1) {
    return 0;
  }
  const Collective plain = plain_form(row.workload.collective);
  const bool alone =
      !row.workload.send_recv && (plain == Collective::gather || plain == Collective::reduce);
  // Of a scatter each rank receives its part only.
  const bool parts = !row.workload.send_recv && plain == Collective::scatter;
  const auto ranks = static_cast<std::uint64_t>(comm_.size());
  return std::max(hop_us_, copy_us(parts ? layout.size_bytes / ranks : layout.size_bytes, alone));
}

}  // namespace unisono::cli
