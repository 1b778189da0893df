#include "bench/limit.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "base/collectives.h"
#include "bench/timing.h"
#include "run/spawn.h"

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

struct alignas(64) CacheLine {
  std::atomic<int> value{0};
};

// Returns all CPUs that a thread of this process can use, in ascending order. The launcher binds
// each rank to one CPU; a thread can undo this for itself, but it cannot exceed the limits of a
// container.
std::vector<int> possible_cpus() {
  std::vector<int> cpus;
  std::thread([&cpus] {
    cpu_set_t set;
    std::memset(&set, 0xff, sizeof(set));
    ::sched_setaffinity(0, sizeof(set), &set);
    cpus = allowed_cpus();
  }).join();
  return cpus;
}

double ping_pong(int first, int last) {
  CacheLine there;
  CacheLine back;
  std::atomic<int> pinned{0};  // threads that run on their CPU
  std::atomic<int> tried{0};
  // Two threads that spin on one CPU would alternate only after each time slice.
  const auto both = [&](int cpu) {
    pinned += pin(cpu) ? 1 : 0;
    ++tried;
    while (tried != 2) {
      std::this_thread::yield();
    }
    return pinned == 2;
  };
  double best = 0;
  std::thread echo([&] {
    for (int i = 1; i <= kRoundTrips * kRepeats && (i > 1 || both(last)); ++i) {
      while (there.value.load(std::memory_order_acquire) != i) {
      }
      back.value.store(i, std::memory_order_release);
    }
  });
  const auto call = [&] {
    if (!both(first)) {
      return;
    }
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
  };
  try {
    std::thread(call).join();
  } catch (const std::system_error&) {
    ++tried;  // not on its CPU: the echo ends
  }
  echo.join();
  return best;
}

// Returns the size of a copy that moves as many bytes through memory as the busiest rank must move.
std::uint64_t copied_bytes(const Case& row, std::uint64_t whole, int ranks) {
  const std::uint64_t part = whole / static_cast<std::uint64_t>(ranks);
  const std::uint64_t others =
      row.in_place ? whole - part : whole;  // its own part is already in place
  if (row.workload.send_recv) {
    return whole;
  }
  switch (plain_form(row.workload.collective)) {
    case Collective::scatter:
      return part;
    case Collective::gather:
    case Collective::all_to_all:
      return others;
    case Collective::broadcast:  // all ranks read the same data
      return (part + whole) / 2;
    case Collective::all_gather:
      return (part + others) / 2;
    case Collective::reduce_scatter:  // its part of every input
      return (whole + part) / 2;
    default:
      return whole;
  }
}

}  // namespace

double measure_hop_us() {
  try {
    const std::vector<int> cpus = possible_cpus();
    return cpus.size() < 2 ? 0 : ping_pong(cpus.front(), cpus.back());
  } catch (const std::system_error&) {
    return 0;  // no thread could be started, so nothing is measured
  }
}

Limit::Limit(Communicator& comm) : comm_(comm) {
  comm.barrier();
  const double mine =
      comm.size() > 1 && comm.hosts() == 1 && comm.rank() == 0 ? measure_hop_us() : 0;
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
      // Marks the copy as used, so that the compiler does not remove it.
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    times.push_back((now_us() - start) / calls);
  }
  std::vector<double> slowest(times.size());
  for (const auto& theirs : gather_numbers(comm_, times)) {
    std::transform(slowest.begin(), slowest.end(), theirs.begin(), slowest.begin(),
                   [](double a, double b) { return std::max(a, b); });
  }
  return copies_[{bytes, alone}] = *std::min_element(slowest.begin(), slowest.end());
}

double Limit::time_us(const Case& row, const CaseCounts& layout) {
  const bool barrier = !row.workload.send_recv && !moves_data(row.workload.collective);
  if (comm_.size() == 1 || comm_.hosts() != 1 || (layout.size_bytes == 0 && !barrier)) {
    return 0;  // nothing is sent, or nothing goes through memory
  }
  const bool alone = !row.workload.send_recv &&
                     traits_of(row.workload.collective).output == Holding::whole_at_root;
  return std::max(hop_us_, copy_us(copied_bytes(row, layout.size_bytes, comm_.size()), alone));
}

}  // namespace unisono::cli
