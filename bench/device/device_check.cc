// The group as its users have it, on one GPU: ranks as threads, and as processes.
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "base/collectives.h"
#include "unisono/device.hpp"

using namespace unisono;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
void must(cudaError_t error, int line) {
  if (error != cudaSuccess) {
    std::printf("FAILED line %d: %s\n", line, cudaGetErrorString(error));
    std::fflush(stdout);
    std::_Exit(3);
  }
}
#define MUST(call) must(call, __LINE__)

std::size_t elements(Holding holding, std::size_t count, std::size_t n, bool vectors) {
  return holding == Holding::part || vectors ? count : n * count;
}

// Random collectives of one order on all ranks: sums of small integers in f32 and i32, against what
// they must be.
long check_all(Communicator& comm, DeviceGroup& group, int trials, bool registered,
               cudaStream_t stream, long* wrong) {
  const auto n = static_cast<std::size_t>(comm.size());
  const auto me = static_cast<std::size_t>(comm.rank());
  constexpr std::size_t kMost = 300000;
  unsigned char *a, *b;
  if (registered) {
    a = static_cast<unsigned char*>(group.allocate(n * kMost * 4));
    b = static_cast<unsigned char*>(group.allocate(n * kMost * 4));
  } else {
    MUST(cudaMalloc(&a, n * kMost * 4));
    MUST(cudaMalloc(&b, n * kMost * 4));
    comm.barrier();
  }
  std::mt19937_64 random(17);
  long checked = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Collective all[] = {Collective::all_reduce, Collective::reduce_scatter,
                              Collective::all_gather, Collective::all_to_all,
                              Collective::broadcast,  Collective::reduce,
                              Collective::scatter,    Collective::gather};
    const Collective collective = all[random() % 8];
    const std::size_t count = random() % 3 == 0 ? random() % kMost : random() % 5000;
    const int root = static_cast<int>(random() % n);
    const bool vectors = cut_of(collective) == VectorCut::none;
    const bool in_place = collective == Collective::broadcast || (vectors && random() % 2 == 0);
    const auto& traits = traits_of(collective);
    const std::size_t in_count = elements(traits.input, count, n, vectors);
    const std::size_t out_count = elements(traits.output, count, n, vectors);
    const auto value = [&](std::size_t rank, std::size_t i) {
      return static_cast<std::int32_t>((i * 31 + rank * 7 + static_cast<std::size_t>(trial)) %
                                       1000);
    };
    std::vector<std::int32_t> input(in_count);
    for (std::size_t i = 0; i < in_count; ++i) {
      input[i] = value(me, i);
    }
    MUST(cudaMemcpyAsync(a, input.data(), in_count * 4, cudaMemcpyHostToDevice, stream));
    unsigned char* out = in_place ? a : b;
    group.run({.collective = collective,
               .in = a,
               .out = out,
               .count = count,
               .dtype = Dtype::i32,
               .reduction = ReduceOp::sum,
               .root = root},
              stream);
    // A copy into memory of the host that is not pinned waits for the kernel with a buffer in its
    // hand that another rank needs on its way to the same kernel.
    group.synchronize(stream);
    std::vector<std::int32_t> got(out_count);
    MUST(cudaMemcpyAsync(got.data(), out, out_count * 4, cudaMemcpyDeviceToHost, stream));
    group.synchronize(stream);
    ++checked;
    if (traits.output == Holding::whole_at_root && static_cast<int>(me) != root) {
      continue;
    }
    for (std::size_t i = 0; i < out_count; ++i) {
      std::int64_t want = 0;
      const auto r = static_cast<std::size_t>(root);
      switch (collective) {
        case Collective::all_reduce:
        case Collective::reduce:
          for (std::size_t k = 0; k < n; ++k) {
            want += value(k, i);
          }
          break;
        case Collective::reduce_scatter:
          for (std::size_t k = 0; k < n; ++k) {
            want += value(k, me * count + i);
          }
          break;
        case Collective::broadcast:
          want = value(r, i);
          break;
        case Collective::scatter:
          want = value(r, me * count + i);
          break;
        case Collective::gather:
        case Collective::all_gather:
          want = value(i / count, i % count);
          break;
        default:
          want = value(i / count, me * count + i % count);
          break;
      }
      if (got[i] != want) {
        if (++*wrong < 5) {
          std::printf("WRONG rank %zu trial %d %s count %zu in_place %d element %zu: %d, not %ld\n",
                      me, trial, std::string(to_string(collective)).c_str(), count, in_place, i,
                      got[i], want);
        }
        break;
      }
    }
  }
  return checked;
}

void threads(int ranks) {
  std::vector<long> wrong(static_cast<std::size_t>(ranks)),
      checked(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& comm) {
    const auto me = static_cast<std::size_t>(comm.rank());
    cudaStream_t stream;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DeviceGroup group(comm, {});
    checked[me] = check_all(comm, group, 400, false, stream, &wrong[me]);
    if (me == 0) {
      std::printf("group of %d threads: random calls done\n", ranks);
    }
    // Speed, as users have it.
    for (const std::size_t bytes : {std::size_t{8192}, std::size_t{256} << 20}) {
      float* data;
      MUST(cudaMalloc(&data, bytes));
      MUST(cudaMemset(data, 0, bytes));
      MUST(cudaDeviceSynchronize());
      comm.barrier();  // cudaMalloc may wait for kernels, which would wait for this rank
      const Call call{.collective = Collective::all_reduce,
                      .in = data,
                      .out = data,
                      .count = bytes / 4,
                      .dtype = Dtype::f32,
                      .reduction = ReduceOp::sum};
      group.run(call, stream);
      group.synchronize(stream);
      std::vector<double> times;
      for (int i = 0; i < (bytes < 100000 ? 2000 : 30); ++i) {
        comm.barrier();
        const double begin = now();
        group.run(call, stream);
        group.synchronize(stream);
        times.push_back(now() - begin);
      }
      std::sort(times.begin(), times.end());
      if (me == 0) {
        std::printf("group of %d threads: all_reduce %zu B: %.2f us\n", ranks, bytes,
                    1e6 * times[times.size() / 2]);
      }
    }
    // A graph.
    float* data;
    MUST(cudaMalloc(&data, 65536));
    comm.barrier();
    std::vector<float> ones(16384, 1.0F);
    MUST(cudaMemcpyAsync(data, ones.data(), 65536, cudaMemcpyHostToDevice, stream));
    const Call call{.collective = Collective::all_reduce,
                    .in = data,
                    .out = data,
                    .count = 16384,
                    .dtype = Dtype::f32,
                    .reduction = ReduceOp::sum};
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < 50; ++k) {
      group.run(call, stream);
    }
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    comm.barrier();
    MUST(cudaGraphLaunch(exec, stream));
    std::vector<float> got(16384);
    group.synchronize(stream);
    MUST(cudaMemcpyAsync(got.data(), data, 65536, cudaMemcpyDeviceToHost, stream));
    group.synchronize(stream);
    float want = 1;
    for (int k = 0; k < 50; ++k) {
      want *= static_cast<float>(ranks);
    }
    if (me == 0) {
      std::printf("group of %d threads: graph of 50: %s\n", ranks,
                  std::all_of(got.begin(), got.end(), [&](float x) { return x == want; })
                      ? "right"
                      : "WRONG");
    }
    // A mistake: memory of the host.
    try {
      group.run({.collective = Collective::all_reduce,
                 .in = got.data(),
                 .out = data,
                 .count = 16,
                 .dtype = Dtype::f32},
                stream);
    } catch (const Error& error) {
      if (me == 0) {
        std::printf("host memory: %s\n", error.what());
      }
    }
    comm.barrier();
  });
  std::printf("group of %d threads: %ld collectives, %ld wrong\n", ranks, checked[0],
              std::accumulate(wrong.begin(), wrong.end(), 0L));
}

void late_and_other() {
  for (const char* what : {"late", "other", "abort"}) {
    run_threads(2, [&](Communicator& comm) {
      cudaStream_t stream;
      MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      float* data;
      MUST(cudaMalloc(&data, 65536));
      DeviceGroup group(comm, {.timeout_ms = 200});
      comm.barrier();
      const double begin = now();
      const bool other = std::string(what) == "other" && comm.rank() == 1;
      try {
        if (comm.rank() == 0 || other) {
          group.run({.collective = Collective::all_reduce,
                     .in = data,
                     .out = data,
                     .count = other ? 100U : 200U,
                     .dtype = Dtype::f32},
                    stream);
        } else if (std::string(what) == "abort") {
          comm.abort("enough");
        }
        group.synchronize(stream);
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
        group.check();
      } catch (const Error& error) {
        std::printf("%s, rank %d after %.0f ms: %s\n", what, comm.rank(), 1e3 * (now() - begin),
                    error.what());
        std::fflush(stdout);
      }
    });
  }
}

int process(int rank, int ranks, bool dies) {
  Communicator comm =
      Communicator::connect({.rank = rank,
                             .size = ranks,
                             .job = "group-check-" + std::to_string(ranks) + (dies ? "d" : "")});
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DeviceGroup group(comm, {});
  long wrong = 0;
  if (!dies) {
    long checked = check_all(comm, group, 60, true, stream, &wrong);
    checked += check_all(comm, group, 60, false, stream, &wrong);
    std::printf("process %d of %d: %ld collectives, registered memory and other, %ld wrong\n", rank,
                ranks, checked, wrong);
    return wrong != 0;
  }
  auto* data = static_cast<float*>(group.allocate(1 << 20));
  const Call call{.collective = Collective::all_reduce,
                  .in = data,
                  .out = data,
                  .count = 1 << 18,
                  .dtype = Dtype::f32};
  group.run(call, stream);
  group.synchronize(stream);
  const double begin = now();
  if (rank == ranks - 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    raise(SIGKILL);
  }
  try {
    group.run(call, stream);
    group.synchronize(stream);
  } catch (const Error& error) {
    std::printf("killed, rank %d after %.1f ms (death after 100): %s\n", rank,
                1e3 * (now() - begin), error.what());
    return 0;
  }
  return 9;
}

void processes(int ranks, bool dies) {
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      const int code = process(r, ranks, dies);
      std::fflush(stdout);
      std::_Exit(code);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    if (!dies && status != 0) {
      std::printf("a process ended with %x\n", status);
    }
  }
}

}  // namespace

int main(int, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  const std::string what = argv[1];
  try {
    if (what == "threads") {
      for (const int ranks : {4, 8, 3}) {
        threads(ranks);
      }
    }
    if (what == "mistakes") {
      late_and_other();
    }
    if (what == "processes") {
      processes(2, false);
      processes(3, false);
    }
    if (what == "killed") {
      processes(2, true);
      processes(4, true);
    }
  } catch (const Error& error) {
    std::printf("ERROR %s\n", error.what());
    return 1;
  }
}
