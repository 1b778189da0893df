// Tests collectives in the memory of one GPU: results, failures of ranks, and times.
// bench/device/suite.sh runs everything.
//
//   bench_device conformance   compares every collective, type and operation with the CPU kernels,
//                              bit by bit, with --shapes random shapes each
//   bench_device graph         replays a graph of 50 all_reduces
//   bench_device abort         the last rank aborts; prints when the other ranks' hosts return
//   bench_device late          the last rank makes no call
//   bench_device death         the last rank is killed (--processes only)
//   bench_device speed         times all_reduce of several sizes, with the time of its bytes at the
//                              device's copy bandwidth, and the time of an empty kernel
//
//   --threads N | --processes N   number and kind of ranks (default: 2 threads)
//   --every N                     conformance: test one kind of call in N
//   --within MS                   failures: time until each host must notice (100)
//   --largest BYTES               speed: largest size
//
// The last line of the output summarises the result. Copies use pinned memory and run between
// barriers, because CUDA may delay a rank's copies while a kernel waits for that rank.
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/quantile.h"
#include "device/testing_driver.h"
#include "device/testing_processes.h"
#include "unisono/device.hpp"

namespace unisono::device {
namespace {

struct Settings {
  int threads = 2;
  int processes = 0;  // if not 0, used instead of threads
  int shapes = 2;
  int every = 1;           // test one kind of call in this many
  double within_ms = 100;  // time until a host must notice a failure
  std::size_t largest = std::size_t{256} << 20;
};

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Pinned host memory.
class Pinned {
 public:
  explicit Pinned(std::size_t bytes) {
    check_cuda(cuda_driver().cuMemHostAlloc(&memory_, bytes, 1), "cuMemHostAlloc");
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { cuda_driver().cuMemFreeHost(memory_); }
  unsigned char* data() const { return static_cast<unsigned char*>(memory_); }

 private:
  void* memory_ = nullptr;
};

std::uint64_t place_of(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

// One rank, with its context, stream and group. Rank 0's result text is the one printed.
class Rank {
 public:
  Rank(Communicator& comm, const DeviceOptions& options = {})
      : comm_(comm), group_(comm, options) {}

  Communicator& comm() { return comm_; }
  DeviceGroup& group() { return group_; }
  void* stream() const { return stream_.handle(); }
  bool is_last() const { return comm_.rank() + 1 == comm_.size(); }
  void wait() const {
    check_cuda(cuda_driver().cuStreamSynchronize(stream_.handle()), "cuStreamSynchronize");
  }

  Call all_reduce(void* data, std::size_t count) const {
    return {.collective = Collective::all_reduce,
            .in = data,
            .out = data,
            .count = count,
            .dtype = Dtype::i64};
  }
  void run(const Call& call) {
    group_.run(call, stream());
    group_.synchronize(stream());
  }

  // Returns the greatest number of any rank, on all ranks.
  template <class Number>
  Number greatest(Number mine) {
    std::array<Number, 1> one = {mine};
    comm_.all_reduce(one, ReduceOp::max);
    return one[0];
  }

 private:
  OnDevice device_{0};
  OwnStream stream_;
  Communicator& comm_;
  DeviceGroup group_;
};

void say(const Communicator& comm, const std::string& text) {
  if (comm.rank() == 0) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }
}

std::string number_text(double number, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", digits, number);
  return text;
}

// ---- conformance

int check_conformance(Communicator& comm, const Settings& settings) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  Rank rank(comm, {.scratch_bytes = std::size_t{1} << 20});
  const Pinned pinned(kBytes);
  const DeviceCopies copies{
      .write =
          [&](unsigned char* to, const unsigned char* from, std::size_t bytes) {
            std::memcpy(pinned.data(), from, bytes);
            check_cuda(cuda_driver().cuMemcpyHtoDAsync_v2(place_of(to), pinned.data(), bytes,
                                                          rank.stream()),
                       "cuMemcpyHtoDAsync");
            rank.wait();
          },
      .read =
          [&](unsigned char* to, const unsigned char* from, std::size_t bytes) {
            using Copy = int(void*, std::uint64_t, std::size_t, void*);
            static Copy* const copy = driver_function<Copy>("cuMemcpyDtoHAsync_v2");
            check_cuda(copy(pinned.data(), place_of(from), bytes, rank.stream()),
                       "cuMemcpyDtoHAsync");
            rank.wait();
            std::memcpy(to, pinned.data(), bytes);
          }};
  const Buffer other_in(kBytes);
  const Buffer other_out(kBytes);
  auto* const own_in = static_cast<unsigned char*>(rank.group().allocate(kBytes));
  auto* const own_out = static_cast<unsigned char*>(rank.group().allocate(kBytes));
  std::mt19937_64 random(11);  // equal on all ranks
  int calls = 0;
  int wrong = 0;
  const std::vector<TrialKind> kinds = trial_kinds();
  for (std::size_t k = 0; k < kinds.size(); k += static_cast<std::size_t>(settings.every)) {
    for (int shape = 0; shape < settings.shapes; ++shape, ++calls) {
      const Trial trial = draw(kinds[k], comm.size(), random);
      const std::size_t shift_in = random() % 20 * size_of(trial.dtype);
      const std::size_t shift_out = random() % 20 * size_of(trial.dtype);
      const bool own = calls % 2 == 0;
      const std::string found =
          run_trial(rank.group(), comm, trial, (own ? own_in : other_in.data()) + shift_in,
                    (own ? own_out : other_out.data()) + shift_out, rank.stream(), false, copies);
      if (!found.empty()) {
        std::printf("wrong: %s\n", found.c_str());
        ++wrong;
      }
    }
  }
  const int worst = rank.greatest(wrong);
  say(comm, std::to_string(worst) + " wrong of " + std::to_string(calls) + " calls");
  return worst == 0 ? 0 : 1;
}

// ---- graphs

int check_graph(Communicator& comm, const Settings&) {
  constexpr int kCalls = 50;
  constexpr int kReplays = 20;
  constexpr std::size_t kCount = 8192;  // 64 KiB
  Rank rank(comm);
  const Pinned pinned(kCount * sizeof(std::int64_t));
  auto* const host = reinterpret_cast<std::int64_t*>(pinned.data());
  auto* const data = rank.group().allocate(kCount * sizeof(std::int64_t));
  const auto fill = [&](std::int64_t value) {
    std::fill_n(host, kCount, value);
    check_cuda(cuda_driver().cuMemcpyHtoDAsync_v2(place_of(data), host,
                                                  kCount * sizeof(std::int64_t), rank.stream()),
               "cuMemcpyHtoDAsync");
    rank.wait();
    comm.barrier();
  };
  const auto read = [&] {
    using Copy = int(void*, std::uint64_t, std::size_t, void*);
    comm.barrier();
    check_cuda(driver_function<Copy>("cuMemcpyDtoHAsync_v2")(
                   host, place_of(data), kCount * sizeof(std::int64_t), rank.stream()),
               "cuMemcpyDtoHAsync");
    rank.wait();
  };
  fill(1);
  driver_function<int(void*, int)>("cuStreamBeginCapture_v2")(rank.stream(), kOfThread);
  for (int k = 0; k < kCalls; ++k) {
    rank.group().run(rank.all_reduce(data, kCount), rank.stream());
  }
  void* graph = nullptr;
  void* executable = nullptr;
  check_cuda(driver_function<int(void*, void**)>("cuStreamEndCapture")(rank.stream(), &graph),
             "cuStreamEndCapture");
  check_cuda(driver_function<int(void**, void*, unsigned long long)>("cuGraphInstantiateWithFlags")(
                 &executable, graph, 0),
             "cuGraphInstantiate");
  std::uint64_t expected = 1;  // sums wrap around
  std::vector<double> times;
  for (int replay = 0; replay < kReplays; ++replay) {
    comm.barrier();
    const std::int64_t begin = now_us();
    check_cuda(driver_function<int(void*, void*)>("cuGraphLaunch")(executable, rank.stream()),
               "cuGraphLaunch");
    rank.group().synchronize(rank.stream());
    times.push_back(static_cast<double>(now_us() - begin) / kCalls);
    for (int k = 0; k < kCalls; ++k) {
      expected *= static_cast<std::uint64_t>(comm.size());
    }
  }
  read();
  const bool right = std::all_of(host, host + kCount, [&](std::int64_t value) {
    return static_cast<std::uint64_t>(value) == expected;
  });
  // Sums of powers of two wrap to zero; sums of other numbers do not.
  fill(comm.rank() + 1);
  rank.run(rank.all_reduce(data, kCount));
  read();
  const bool sums = host[kCount - 1] == comm.size() * (comm.size() + 1) / 2;
  comm.barrier();
  driver_function<int(void*)>("cuGraphDestroy")(graph);
  const int wrong = rank.greatest(right && sums ? 0 : 1);
  say(comm, std::string(wrong == 0 ? "right" : "wrong") + "; " +
                number_text(rank.greatest(median(times)), 1) + " us a call");
  return wrong;
}

// ---- failures

// Prints the error that ended the call of a rank that did not fail. The communicator has ended, so
// each rank prints its own error.
int judge(const Communicator& comm, const Settings& settings, const Error& error, bool right,
          double after_ms) {
  const bool in_time = after_ms <= settings.within_ms;
  std::printf("rank %d: %.1f ms after: %s%s\n", comm.rank(), after_ms,
              std::string(error.summary()).c_str(),
              !right    ? " (another error was expected)"
              : in_time ? ""
                        : " (too late)");
  std::fflush(stdout);
  return right && in_time ? 0 : 1;
}

std::int64_t last_number(std::string_view text) {
  const std::size_t end = text.find_last_of("0123456789");
  if (end == std::string_view::npos) {
    return 0;
  }
  const std::size_t before = text.find_last_not_of("0123456789", end);
  std::int64_t number = 0;
  std::from_chars(text.data() + (before == std::string_view::npos ? 0 : before + 1),
                  text.data() + end + 1, number);
  return number;
}

int check_abort(Communicator& comm, const Settings& settings) {
  Rank rank(comm);
  void* const data = rank.group().allocate(4096);
  rank.run(rank.all_reduce(data, 100));
  comm.barrier();
  if (rank.is_last()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // others start their kernels
    comm.abort("bench at " + std::to_string(now_us()));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return 0;
  }
  const Error error = error_of([&] { rank.run(rank.all_reduce(data, 100)); });
  const double after = static_cast<double>(now_us() - last_number(error.summary())) / 1000;
  return judge(comm, settings, error, error.code() == ErrorCode::aborted, after);
}

int check_late(Communicator& comm, const Settings& settings) {
  constexpr int kLimitMs = 200;
  Rank rank(comm, {.timeout_ms = kLimitMs});
  void* const data = rank.group().allocate(4096);
  comm.barrier();
  if (rank.is_last()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * kLimitMs));
    return 0;
  }
  const std::int64_t begin = now_us();
  const Error error = error_of([&] { rank.run(rank.all_reduce(data, 100)); });
  const double after = static_cast<double>(now_us() - begin) / 1000 - kLimitMs;
  // The first rank that notices the failure notifies the others.
  const bool is_known = error.code() == ErrorCode::timeout || error.code() == ErrorCode::aborted;
  const std::string said = "rank " + std::to_string(comm.size() - 1) + " has not arrived";
  return judge(comm, settings, error,
               is_known && error.message().find(said) != std::string_view::npos, after);
}

int check_death(Communicator& comm, const Settings& settings) {
  Rank rank(comm);
  void* const data = rank.group().allocate(4096);
  rank.run(rank.all_reduce(data, 100));
  if (rank.is_last()) {
    comm.barrier();
    ::raise(SIGKILL);
  }
  std::int64_t begin = now_us();
  const Error error = error_of([&] {
    comm.barrier();  // the last rank may die before the others leave it
    begin = now_us();
    while (true) {
      rank.run(rank.all_reduce(data, 100));
    }
  });
  return judge(comm, settings, error,
               error.code() == ErrorCode::peer_lost && error.context().peer == comm.size() - 1,
               static_cast<double>(now_us() - begin) / 1000);
}

// ---- speed

class Speed {
 public:
  Speed(Communicator& comm, const Settings& settings)
      : rank_(comm),
        largest_(settings.largest),
        in_(rank_.group().allocate(largest_)),
        out_(rank_.group().allocate(largest_)) {}

  int measure() {
    const double empty = time([&] { fill(); }, 50);
    const double copied = time([&] { copy(); }, 10);
    const double bytes_a_us = 2.0 * static_cast<double>(largest_) / copied;
    Communicator& comm = rank_.comm();
    say(comm, "one byte filled, with synchronisation: " + number_text(empty, 1) +
                  " us; copies on the device: " + number_text(bytes_a_us / 1e3, 0) +
                  " GB/s read and written");
    say(comm, "       bytes all_reduce us  of its bytes  of an empty one");
    std::string shortest;
    std::string longest;
    for (std::size_t bytes = 8192; bytes <= largest_; bytes *= 8) {
      const double took = time([&] { reduce(bytes); }, bytes < (std::size_t{1} << 24) ? 100 : 20);
      // All ranks share one device, and each reads its input once and writes its result once.
      const double least = 2.0 * comm.size() * static_cast<double>(bytes) / bytes_a_us;
      char line[96];
      std::snprintf(line, sizeof(line), "%12zu %13.1f %13.2f %16.2f", bytes, took, took / least,
                    took / empty);
      say(comm, line);
      if (shortest.empty()) {
        shortest = "8 KiB " + number_text(took / empty, 2) + "x of an empty one";
      }
      longest =
          std::to_string(bytes >> 20) + " MiB " + number_text(took / least, 2) + "x of its bytes";
    }
    say(comm, shortest + "; " + longest);
    return 0;
  }

 private:
  // Returns the median time of `work` on the slowest rank, until its stream is done.
  template <class Work>
  double time(const Work& work, int repeat) {
    std::vector<double> times;
    for (int i = -3; i < repeat; ++i) {
      rank_.comm().barrier();
      const auto begin = std::chrono::steady_clock::now();
      work();
      const double took = rank_.greatest(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
              .count());
      if (i >= 0) {
        times.push_back(took);
      }
    }
    return median(times);
  }
  void fill() {
    check_cuda(cuda_driver().cuMemsetD8Async(place_of(in_), 0, 1, rank_.stream()),
               "cuMemsetD8Async");
    rank_.wait();
  }
  void copy() {
    if (rank_.comm().rank() != 0) {
      return;
    }
    using Copy = int(std::uint64_t, std::uint64_t, std::size_t, void*);
    static Copy* const call = driver_function<Copy>("cuMemcpyDtoDAsync_v2");
    check_cuda(call(place_of(out_), place_of(in_), largest_, rank_.stream()), "cuMemcpyDtoDAsync");
    rank_.wait();
  }
  void reduce(std::size_t bytes) {
    rank_.run({.collective = Collective::all_reduce,
               .in = in_,
               .out = out_,
               .count = bytes / sizeof(float),
               .dtype = Dtype::f32});
  }

  Rank rank_;
  std::size_t largest_;
  void* in_;
  void* out_;
};

int measure_speed(Communicator& comm, const Settings& settings) {
  return Speed(comm, settings).measure();
}

// ----

using What = int (*)(Communicator& comm, const Settings& settings);
const std::map<std::string_view, What> kWhat = {{"conformance", check_conformance},
                                                {"graph", check_graph},
                                                {"abort", check_abort},
                                                {"late", check_late},
                                                {"death", check_death},
                                                {"speed", measure_speed}};

int run_all(std::string_view name, What what, const Settings& settings) {
  const bool fails = name == "abort" || name == "late" || name == "death";
  int wrong = 0;
  if (settings.processes > 0) {
    std::vector<int> codes =
        run_processes(settings.processes, [&](Communicator& comm) { return what(comm, settings); });
    if (name == "death" && codes.back() == -SIGKILL) {
      codes.back() = 0;
    }
    wrong = static_cast<int>(
        std::count_if(codes.begin(), codes.end(), [](int code) { return code != 0; }));
  } else {
    std::atomic<int> count = 0;
    run_threads(settings.threads, [&](Communicator& comm) {
      if (what(comm, settings) != 0) {
        ++count;
      }
    });
    wrong = count;
  }
  if (fails) {
    const int others =
        std::max(settings.processes, settings.threads * (settings.processes == 0)) - 1;
    std::printf("%d of %d ranks named it within %.0f ms\n", others - wrong, others,
                settings.within_ms);
  }
  return wrong == 0 ? 0 : 1;
}

int usage() {
  std::fprintf(stderr,
               "usage: bench_device conformance|graph|abort|late|death|speed\n"
               "                    [--threads N | --processes N] [--shapes N] [--every N]\n"
               "                    [--within MS] [--largest BYTES]\n");
  return 2;
}

}  // namespace
}  // namespace unisono::device

int main(int count, char** words) {
  using namespace unisono::device;  // NOLINT(google-build-using-namespace)
  const auto found = kWhat.find(count > 1 ? words[1] : "");
  if (found == kWhat.end() || count % 2 != 0) {
    return usage();
  }
  Settings settings;
  for (int i = 2; i + 1 < count; i += 2) {
    const std::string_view option = words[i];
    long long value = 0;
    const std::string_view text = words[i + 1];
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
    if (!is_number || value < 1 || value > (1LL << 40)) {
      return usage();
    }
    if (option == "--threads") {
      settings.threads = static_cast<int>(value);
    } else if (option == "--processes") {
      settings.processes = static_cast<int>(value);
    } else if (option == "--shapes") {
      settings.shapes = static_cast<int>(value);
    } else if (option == "--every") {
      settings.every = static_cast<int>(value);
    } else if (option == "--within") {
      settings.within_ms = static_cast<double>(value);
    } else if (option == "--largest") {
      settings.largest = static_cast<std::size_t>(std::max(value, 8192LL));
    } else {
      return usage();
    }
  }
  if (found->first == "death" && settings.processes < 2) {
    std::fprintf(stderr, "bench_device death: give --processes, at least 2\n");
    return 2;
  }
  try {
    return run_all(found->first, found->second, settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
