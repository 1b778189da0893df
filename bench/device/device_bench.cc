// Collectives in the memory of one GPU: random calls against what the same ranks compute in memory
// of the host, to the bit; then all_reduce of several sizes, beside what its bytes take at the
// device's own copy bandwidth and beside an empty piece of work with synchronisation.
//
//   bench_device --threads 4 [--calls N] [--largest BYTES]       ranks as threads
//   unisono run -n 4 -- bench_device [--calls N] [...]           ranks as processes
//
// Copies go through pinned memory, and between barriers: while the kernel of one rank waits for
// another, CUDA may hold back what that one asks for.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/quantile.h"
#include "device/cuda_driver.h"
#include "unisono/device.hpp"

namespace unisono {
namespace {

using device::check_cuda;
using device::cuda_driver;

struct Settings {
  int threads = 0;  // 0: whoever started this process says which rank it is
  int calls = 200;
  std::size_t largest = std::size_t{256} << 20;
};

// The driver functions that this program needs in addition to the library's.
template <class Function>
Function* driver_function(const char* name) {
  static void* const library =
      ::dlopen(read_env("UNISONO_CUDA").value_or("libcuda.so.1").c_str(), RTLD_NOW);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) {
    throw Error(ErrorCode::config, std::string("the driver has no ") + name);
  }
  return reinterpret_cast<Function*>(found);
}

class Stream {
 public:
  Stream() { check_cuda(cuda_driver().cuStreamCreate(&handle_, 1), "cuStreamCreate"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cuda_driver().cuStreamDestroy_v2(handle_); }
  void* handle() const { return handle_; }
  void wait() const {
    check_cuda(cuda_driver().cuStreamSynchronize(handle_), "cuStreamSynchronize");
  }

 private:
  void* handle_ = nullptr;
};

// Pinned memory of the host.
class Pinned {
 public:
  explicit Pinned(std::size_t bytes) : bytes_(bytes) {
    check_cuda(cuda_driver().cuMemHostAlloc(&memory_, bytes, 1), "cuMemHostAlloc");
  }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() { cuda_driver().cuMemFreeHost(memory_); }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_;
};

void to_device(void* to, const void* from, std::size_t bytes, const Stream& stream) {
  check_cuda(cuda_driver().cuMemcpyHtoDAsync_v2(reinterpret_cast<std::uint64_t>(to), from, bytes,
                                                stream.handle()),
             "cuMemcpyHtoDAsync");
  stream.wait();
}

void to_host(void* to, const void* from, std::size_t bytes, const Stream& stream) {
  using Copy = int(void*, std::uint64_t, std::size_t, void*);
  static Copy* const copy = driver_function<Copy>("cuMemcpyDtoHAsync_v2");
  check_cuda(copy(to, reinterpret_cast<std::uint64_t>(from), bytes, stream.handle()),
             "cuMemcpyDtoHAsync");
  stream.wait();
}

double us_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

// One rank's side.
class Bench {
 public:
  Bench(Communicator& comm, const Settings& settings)
      : comm_(comm),
        settings_(settings),
        group_(comm),
        in_(static_cast<std::byte*>(group_.allocate(settings.largest))),
        out_(static_cast<std::byte*>(group_.allocate(settings.largest))),
        host_(std::min(kMostChecked, settings.largest)) {}

  // Calls whose result is another than that of the host, on this rank.
  int check() {
    constexpr std::array kCollectives = {Collective::broadcast,      Collective::all_reduce,
                                         Collective::all_gather,     Collective::all_to_all,
                                         Collective::reduce_scatter, Collective::reduce};
    constexpr std::array kTypes = {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::i32, Dtype::u8};
    std::mt19937 random(7);  // the same on all ranks
    const auto ranks = static_cast<std::size_t>(comm_.size());
    int wrong = 0;
    for (int i = 0; i < settings_.calls; ++i) {
      Call call{.collective = kCollectives[random() % kCollectives.size()],
                .dtype = kTypes[random() % kTypes.size()]};
      call.root = static_cast<int>(random() % ranks);
      const std::size_t most = host_.bytes() / size_of(call.dtype) / ranks;
      call.count = std::min(most, std::size_t{1} << random() % 20) - random() % 2;
      wrong += check_call(call, static_cast<unsigned>(random())) ? 0 : 1;
    }
    return wrong;
  }

  // The median of what `call` takes on the slowest rank, until its stream is done.
  template <class Work>
  double time(const Work& work, int repeat) {
    std::vector<double> times;
    for (int i = -3; i < repeat; ++i) {
      comm_.barrier();
      const auto begin = std::chrono::steady_clock::now();
      work();
      std::array<double, 1> took = {us_since(begin)};
      comm_.all_reduce(took, ReduceOp::max);
      if (i >= 0) {
        times.push_back(took[0]);
      }
    }
    return median(times);
  }

  void measure() {
    const double empty = time([&] { fill(in_, 1); }, 50);
    const double copied = time(
        [&] {
          if (comm_.rank() == 0) {
            copy(out_, in_, settings_.largest);
          }
        },
        10);
    const double bytes_a_us = 2.0 * static_cast<double>(settings_.largest) / copied;
    say("one byte filled, with synchronisation: %.1f us; copies on the device: %.0f GB/s read and "
        "written\n%12s %10s %12s\n",
        empty, bytes_a_us / 1e3, "all_reduce", "us", "of its bytes");
    for (std::size_t bytes = 8192; bytes <= settings_.largest; bytes *= 8) {
      const Call call{.collective = Collective::all_reduce,
                      .in = in_,
                      .out = out_,
                      .count = bytes / sizeof(float),
                      .dtype = Dtype::f32};
      const double took = time(
          [&] {
            group_.run(call, stream_.handle());
            group_.synchronize(stream_.handle());
          },
          bytes < (std::size_t{1} << 24) ? 100 : 20);
      // All ranks are on one device: each reads its input once and writes its result once.
      const double least = 2.0 * comm_.size() * static_cast<double>(bytes) / bytes_a_us;
      say("%12zu %10.1f %12.2f\n", bytes, took, took / least);
    }
  }

  template <class... Values>
  void say(const char* format, Values... values) const {
    if (comm_.rank() == 0) {
      std::printf(format, values...);
      std::fflush(stdout);
    }
  }

 private:
  static constexpr std::size_t kMostChecked = std::size_t{16} << 20;

  bool check_call(Call call, unsigned seed) {
    const std::size_t size = size_of(call.dtype);
    const auto ranks = static_cast<std::size_t>(comm_.size());
    const bool one_to_all =
        call.collective == Collective::all_gather || call.collective == Collective::all_to_all;
    const bool all_to_one =
        call.collective == Collective::reduce_scatter || call.collective == Collective::all_to_all;
    const std::size_t in_bytes = call.count * size * (all_to_one ? ranks : 1);
    const std::size_t out_bytes = call.count * size * (one_to_all ? ranks : 1);
    std::mt19937 random(seed + static_cast<unsigned>(comm_.rank()));
    std::vector<std::byte> input(in_bytes);
    for (std::byte& one : input) {
      one = static_cast<std::byte>(random() % 64);  // small numbers in every type
    }
    std::vector<std::byte> expected(out_bytes);
    std::memcpy(host_.data(), input.data(), in_bytes);
    to_device(in_, host_.data(), in_bytes, stream_);
    std::memset(host_.data(), 0, out_bytes);
    to_device(out_, host_.data(), out_bytes, stream_);
    Call on_host = call;
    on_host.in = input.data();
    on_host.out = expected.data();
    if (call.collective == Collective::broadcast) {
      std::memcpy(expected.data(), input.data(), in_bytes);
      on_host.in = expected.data();
      std::memcpy(host_.data(), input.data(), in_bytes);
      to_device(out_, host_.data(), in_bytes, stream_);
    }
    comm_.run(on_host);
    call.in = call.collective == Collective::broadcast ? out_ : in_;
    call.out = out_;
    group_.run(call, stream_.handle());
    group_.synchronize(stream_.handle());
    comm_.barrier();
    to_host(host_.data(), out_, out_bytes, stream_);
    comm_.barrier();
    const bool has_result = call.collective != Collective::reduce || comm_.rank() == call.root;
    return !has_result || out_bytes == 0 ||
           std::memcmp(host_.data(), expected.data(), out_bytes) == 0;
  }

  void fill(std::byte* to, std::size_t bytes) const {
    check_cuda(cuda_driver().cuMemsetD8Async(reinterpret_cast<std::uint64_t>(to), 0, bytes,
                                             stream_.handle()),
               "cuMemsetD8Async");
    stream_.wait();
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
    using Copy = int(std::uint64_t, std::uint64_t, std::size_t, void*);
    static Copy* const call = driver_function<Copy>("cuMemcpyDtoDAsync_v2");
    check_cuda(call(reinterpret_cast<std::uint64_t>(to), reinterpret_cast<std::uint64_t>(from),
                    bytes, stream_.handle()),
               "cuMemcpyDtoDAsync");
    stream_.wait();
  }

  Communicator& comm_;
  const Settings& settings_;
  DeviceGroup group_;
  std::byte* in_;
  std::byte* out_;
  Pinned host_;
  Stream stream_;
};

int run_rank(Communicator& comm, const Settings& settings) {
  // The driver's calls of this program need the context that the group uses.
  void* context = nullptr;
  check_cuda(cuda_driver().cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check_cuda(cuda_driver().cuCtxSetCurrent(context), "cuCtxSetCurrent");
  std::array<int, 1> wrong = {};
  {
    Bench bench(comm, settings);
    wrong[0] = bench.check();
    comm.all_reduce(wrong, ReduceOp::sum);
    bench.say("%d ranks: %d wrong of %d calls\n", comm.size(), wrong[0], settings.calls);
    bench.measure();
  }
  cuda_driver().cuDevicePrimaryCtxRelease_v2(0);
  return wrong[0] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace unisono

int main(int count, char** words) {
  unisono::Settings settings;
  if (count % 2 == 0) {
    std::fprintf(stderr, "usage: bench_device [--threads N] [--calls N] [--largest BYTES]\n");
    return 2;
  }
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view option = words[i];
    const long long value = std::atoll(words[i + 1]);
    if (option == "--threads") {
      settings.threads = static_cast<int>(value);
    } else if (option == "--calls") {
      settings.calls = static_cast<int>(value);
    } else if (option == "--largest") {
      settings.largest = static_cast<std::size_t>(std::max(value, 8192LL));
    } else {
      std::fprintf(stderr, "bench_device: what is %s?\n", words[i]);
      return 2;
    }
  }
  try {
    if (settings.threads == 0) {
      auto comm = unisono::Communicator::connect();
      return unisono::run_rank(comm, settings);
    }
    std::atomic<int> worst = 0;
    unisono::run_threads(settings.threads, [&](unisono::Communicator& comm) {
      const int status = unisono::run_rank(comm, settings);
      worst = std::max(worst.load(), status);
    });
    return worst;
  } catch (const unisono::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
