// Measures the limits of this machine, with the same driver as the libraries.
//
//   bench_limits --directory DIR
//
//   hop                               one-way transfer of a cache line between the two CPUs
//   switch                            one process switch on one CPU, by sched_yield
//   copy bytes=B                      one copy on one CPU
//   all_reduce bytes=B ranks=N fresh=F budget_ms=M
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "limits/all_reduce.h"
#include "limits/sums.h"
#include "peers/channel.h"
#include "peers/control.h"
#include "peers/timing.h"

namespace unisono::bench {
namespace {

struct Turn {
  alignas(128) std::atomic<int> value{0};
};

// Two threads pass a turn back and forth `rounds` times. Returns nanoseconds per handover.
double handover_ns(int rounds, int second_cpu_of, bool yield) {
  Turn turn;
  const auto play = [&turn, rounds, yield](int me) {
    for (int round = 0; round < rounds; ++round) {
      while (turn.value.load(std::memory_order_acquire) != me) {
        if (yield) {
          sched_yield();
        }
      }
      turn.value.store(1 - me, std::memory_order_release);
    }
  };
  std::thread other([&] {
    pin_rank(second_cpu_of, 2);
    play(1);
  });
  double elapsed_ns = 0.0;
  std::thread self([&] {
    pin_rank(0, 2);
    // The first handover waits for the other thread to start.
    turn.value.store(1);
    while (turn.value.load() != 0) {
      sched_yield();
    }
    const std::uint64_t begin = ticks();
    for (int round = 1; round < rounds; ++round) {
      turn.value.store(1, std::memory_order_release);
      while (turn.value.load(std::memory_order_acquire) != 0) {
        if (yield) {
          sched_yield();
        }
      }
    }
    elapsed_ns = static_cast<double>(ticks() - begin);
  });
  self.join();
  other.join();
  return elapsed_ns * nanoseconds_per_tick() / (2.0 * (rounds - 1));
}

// Returns the least of several measurements, because disturbances only make a handover longer.
double least_handover_us(int second_cpu_of, bool yield) {
  constexpr int kAttempts = 8;
  constexpr int kRounds = 400;
  double least = handover_ns(kRounds, second_cpu_of, yield);
  for (int i = 1; i < kAttempts; ++i) {
    least = std::min(least, handover_ns(kRounds, second_cpu_of, yield));
  }
  return least / 1000.0;
}

double copy_us(std::size_t bytes, double budget_ms) {
  const std::unique_ptr<char[]> memory = std::make_unique<char[]>(2 * bytes + 128);
  char* base = memory.get() + 64 - reinterpret_cast<std::uintptr_t>(memory.get()) % 64;
  const double tick_us = nanoseconds_per_tick() / 1000.0;
  double best = 0.0;
  for (const bool stream : {false, true}) {
    std::vector<double> samples;
    double spent_us = 0.0;
    while (samples.size() < 5 || (spent_us < budget_ms * 1000 && samples.size() < 2000)) {
      const std::uint64_t begin = ticks();
      copy_bytes(base + bytes, base, bytes, stream && bytes % 64 == 0);
      samples.push_back(static_cast<double>(ticks() - begin) * tick_us);
      spent_us += samples.back();
    }
    const double median = quantile(samples, 0.5);
    best = best == 0.0 ? median : std::min(best, median);
  }
  return best;
}

std::string answer(double median_us, const std::string& variant) {
  char text[256];
  std::snprintf(text, sizeof text,
                R"({"implementation":"limit","median_us":%.4f,"variant":"%s","wrong":0})",
                median_us, variant.c_str());
  return text;
}

std::string measure(const std::string& directory, const std::string& line) {
  const Request request = parse_request(line);
  const auto bytes = static_cast<std::size_t>(request.number("bytes", 8));
  const auto budget_ms = static_cast<double>(request.number("budget_ms", 60));
  if (request.name == "hop") {
    return answer(least_handover_us(1, false), "ping-pong");
  }
  if (request.name == "switch") {
    return answer(least_handover_us(0, true), "sched_yield");
  }
  if (request.name == "copy") {
    return answer(copy_us(bytes, budget_ms), "copy");
  }
  if (request.name == "all_reduce") {
    const auto ranks = static_cast<int>(std::max(2L, request.number("ranks", 2)));
    const Limit limit =
        all_reduce_limit(directory, bytes, ranks,
                         {.budget_ms = budget_ms, .fresh = request.number("fresh", 1) != 0});
    return answer(limit.median_us, limit.variant);
  }
  return R"({"unsupported":true})";
}

}  // namespace
}  // namespace unisono::bench

int main(int argc, char** argv) {
  try {
    if (argc != 3 || std::string(argv[1]) != "--directory") {
      throw std::runtime_error("usage: bench_limits --directory DIR");
    }
    unisono::bench::Channel channel(argv[2]);
    channel.write_line(R"({"ready":true})");
    while (const auto line = channel.read_line()) {
      if (*line == "quit") {
        break;
      }
      channel.write_line(unisono::bench::measure(argv[2], *line));
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
