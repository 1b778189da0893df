// Checks and measurements on one GPU: ranks as streams of one process, and as processes over IPC.
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "gpu_check/cases.h"

namespace unisono::device {
#define ONE(name) const void* kernel_##name(ReduceOp op);
ONE(i8) ONE(u8) ONE(i32) ONE(u32) ONE(i64) ONE(u64) ONE(f16) ONE(bf16) ONE(f8e4m3) ONE(f8e5m2) ONE(f32) ONE(f64)
#undef ONE

const void* kernel_of(Dtype dtype, ReduceOp op) {
  switch (dtype) {
    case Dtype::i8: return kernel_i8(op);
    case Dtype::u8: return kernel_u8(op);
    case Dtype::i32: return kernel_i32(op);
    case Dtype::u32: return kernel_u32(op);
    case Dtype::i64: return kernel_i64(op);
    case Dtype::u64: return kernel_u64(op);
    case Dtype::f16: return kernel_f16(op);
    case Dtype::bf16: return kernel_bf16(op);
    case Dtype::f8e4m3: return kernel_f8e4m3(op);
    case Dtype::f8e5m2: return kernel_f8e5m2(op);
    case Dtype::f32: return kernel_f32(op);
    case Dtype::f64: return kernel_f64(op);
    default: return nullptr;
  }
}

void must(cudaError_t error, const char* what, int line) {
  if (error != cudaSuccess) {
    std::printf("FAILED line %d: %s: %s\n", line, what, cudaGetErrorString(error));
    std::fflush(stdout);
    std::_Exit(3);
  }
}
#define MUST(call) must(call, #call, __LINE__)

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct GpuMemory : Memory {
  void* allocate(std::size_t bytes) override {
    void* result = nullptr;
    MUST(cudaMalloc(&result, bytes));
    MUST(cudaMemset(result, 0, bytes));
    MUST(cudaDeviceSynchronize());
    all.push_back(result);
    return result;
  }
  void* host(std::size_t bytes) override {
    void* result = nullptr;
    MUST(cudaHostAlloc(&result, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
    std::memset(result, 0, bytes);
    return result;
  }
  void put(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) MUST(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  }
  void get(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) MUST(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
  }
  ~GpuMemory() override {
    for (void* one : all) cudaFree(one);
  }
  std::vector<void*> all;
};

void launch(Dtype dtype, ReduceOp op, const Launch& one, cudaStream_t stream) {
  Launch copy = one;
  copy.multiplies = op == ReduceOp::premul_sum;
  copy.factor = 0.75;
  void* arguments[] = {&copy};
  MUST(cudaLaunchKernel(kernel_of(dtype, op), dim3(copy.channels), dim3(512), arguments, 0, stream));
}



std::vector<cudaStream_t> streams;

void run_all(Dtype dtype, ReduceOp op, const Prepared& prepared) {
  for (std::size_t r = 0; r < prepared.launches.size(); ++r) {
    launch(dtype, op, prepared.launches[r], streams[r]);
  }
  MUST(cudaDeviceSynchronize());
}

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

Prepared prepare_all_reduce(World& world, int ranks, const char* name, std::size_t bytes, GraphOptions options) {
  const Algorithm& algorithm = *find_algorithm(Collective::all_reduce, name);
  const Schedule schedule = build_schedule(algorithm, complete(algorithm, {.ranks = ranks}));
  const std::vector<engine::Sizes> sizes(static_cast<std::size_t>(ranks), {.element = 4, .count = bytes / 4});
  return world.prepare(schedule, sizes, options);
}

void correctness() {
  for (const int ranks : {2, 4, 8, 3}) {
    GpuMemory memory;
    World world(memory, ranks, 8, 8 << 20, 4 << 20);
    std::mt19937_64 random(static_cast<unsigned>(ranks) + 100);
    Checks checks(memory, world, ranks, run_all, 9);
    const double begin = now();
    check_kernels(checks, random);
    std::printf("correctness, %d ranks: kernels %ld checked, %ld wrong\n", ranks, checks.checked, checks.wrong);
    check_catalog(checks, ranks, random);
    std::printf("correctness, %d ranks: with the catalogue %ld checked, %ld wrong (%.1f s)\n", ranks, checks.checked, checks.wrong, now() - begin);
    std::fflush(stdout);
  }
}

double copy_bandwidth(std::size_t bytes) {
  GpuMemory memory;
  void* a = memory.allocate(bytes);
  void* b = memory.allocate(bytes);
  std::vector<double> times;
  for (int i = 0; i < 12; ++i) {
    const double begin = now();
    for (int k = 0; k < 10; ++k) MUST(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, streams[0]));
    MUST(cudaStreamSynchronize(streams[0]));
    times.push_back((now() - begin) / 10);
  }
  return 2.0 * static_cast<double>(bytes) / median(times);
}

void bandwidth() {
  const double copy = copy_bandwidth(std::size_t{1} << 30);
  std::printf("copy, device to device, 1 GiB: %.0f GB/s read and written\n", copy / 1e9);
  const std::size_t bytes = 256 << 20;
  for (const int ranks : {4, 2, 8}) {
    for (const std::uint32_t channels : {16U, 24U, 32U, 33U, 48U, 64U}) {
      int per = 0;
      MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per, kernel_of(Dtype::f32, ReduceOp::sum), 512, 0));
      if (static_cast<int>(channels) * ranks > per * 132) continue;
      GpuMemory memory;
      World world(memory, ranks, channels, 16 << 20, bytes);
      for (const char* name : {"flat", "ring"}) {
        for (const GraphOptions options : {GraphOptions{.in_place = true}, GraphOptions{.in_place = false}, GraphOptions{.in_place = true, .direct = false}}) {
          if (channels != 32 && channels != 33 && (name[0] == 'r' || !options.direct)) continue;
          for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
            if (dtype == Dtype::bf16 && name[0] == 'r') continue;
            const Prepared prepared = prepare_all_reduce(world, ranks, name, bytes, options);
            std::vector<double> times;
            for (int i = 0; i < 9; ++i) {
              const double begin = now();
              for (int k = 0; k < 5; ++k) {
                for (int r = 0; r < ranks; ++r) launch(dtype, ReduceOp::sum, prepared.launches[static_cast<std::size_t>(r)], streams[static_cast<std::size_t>(r)]);
              }
              MUST(cudaDeviceSynchronize());
              times.push_back((now() - begin) / 5);
            }
            const double limit = 2.0 * ranks * static_cast<double>(bytes) / copy;
            std::printf("all_reduce %s %d ranks %u channels (%d blocks an SM) 256 MiB %s in_place=%d direct=%d: %.1f us, %.3f of the limit %.1f us; pushed %d pulled %d staged %d\n", name, ranks, channels, per,
                        dtype == Dtype::f32 ? "f32" : "bf16", options.in_place, options.direct, 1e6 * median(times), median(times) / limit, 1e6 * limit, prepared.graph.pushed, prepared.graph.pulled, prepared.graph.staged);
            std::fflush(stdout);
          }
        }
      }
    }
  }
}

// Times of operations one after the other, and the time that the bytes need which must move: each
// input read once, each output written once.
void sweep() {
  const double copy = copy_bandwidth(std::size_t{1} << 30);
  std::printf("copy %.0f GB/s\n", copy / 1e9);
  for (const int ranks : {2, 4, 8}) {
    const std::uint32_t most = ranks == 8 ? 32U : 32U;
    for (const auto& [collective, name] : {std::pair{Collective::all_reduce, "flat"}, std::pair{Collective::all_reduce, "one_shot"}, std::pair{Collective::reduce_scatter, "flat"},
                                           std::pair{Collective::all_gather, "flat"}, std::pair{Collective::all_to_all, "flat"}, std::pair{Collective::broadcast, "flat"}}) {
      for (const bool direct : {true, false}) {
        for (std::size_t bytes = 4096; bytes <= std::size_t{256} << 20; bytes *= direct ? 16 : 64) {
          if (std::string(name) == "one_shot" && bytes > (1 << 20)) continue;
          const std::uint32_t channels = bytes <= 65536 ? 2U : bytes <= (1 << 20) ? 8U : most;
          GpuMemory memory;
          World world(memory, ranks, channels, std::size_t{32} << 20, bytes);
          const Algorithm& algorithm = *find_algorithm(collective, name);
          const Schedule schedule = build_schedule(algorithm, complete(algorithm, {.ranks = ranks}));
          const auto n = static_cast<std::size_t>(ranks);
          const std::size_t count = cut_of(collective) == VectorCut::none ? bytes / 4 : bytes / 4 / n;
          const std::vector<engine::Sizes> sizes(n, {.element = 4, .count = count});
          const Prepared prepared = world.prepare(schedule, sizes, {.direct = direct});
          std::vector<double> times;
          const int loops = bytes >= (64 << 20) ? 5 : 20;
          for (int i = 0; i < 7; ++i) {
            const double begin = now();
            for (int k = 0; k < loops; ++k) {
              for (std::size_t r = 0; r < n; ++r) launch(Dtype::f32, ReduceOp::sum, prepared.launches[r], streams[r]);
            }
            MUST(cudaDeviceSynchronize());
            times.push_back((now() - begin) / loops);
          }
          const double s = static_cast<double>(bytes);
          const double moved = collective == Collective::all_reduce || collective == Collective::all_to_all ? 2 * ranks * s : collective == Collective::broadcast ? ranks * s : (ranks + 1) * s;
          std::printf("sweep %s %s ranks %d bytes %zu channels %u direct %d parts %llu: %.2f us, %.3f of the limit\n", std::string(to_string(collective)).c_str(), name, ranks, bytes, channels, direct,
                      static_cast<unsigned long long>(prepared.launches[0].parts), 1e6 * median(times), median(times) * copy / moved);
          std::fflush(stdout);
        }
      }
    }
  }
}

void launch_nothing(cudaStream_t stream);

void latency() {
  std::vector<double> empty;
  for (int i = 0; i < 2000; ++i) {
    const double begin = now();
    launch_nothing(streams[0]);
    MUST(cudaStreamSynchronize(streams[0]));
    empty.push_back(now() - begin);
  }
  std::printf("empty kernel and synchronisation, one thread: %.2f us\n", 1e6 * median(empty));
  for (const std::uint32_t channels : {1U, 2U, 4U}) {
    for (const std::size_t bytes : {8UL, 8192UL, 65536UL}) {
      GpuMemory memory;
      World world(memory, 2, channels, 1 << 20, 1 << 20);
      const Prepared prepared = prepare_all_reduce(world, 2, "one_shot", bytes, {});
      std::atomic<int> ready = 0;
      std::vector<double> times[2], both_empty[2];
      const auto rank = [&](std::size_t r) {
        const auto meet = [&](int round) {
          ready.fetch_add(1);
          while (ready.load() < 2 * round) {}
        };
        int round = 0;
        for (int i = 0; i < 2000; ++i) {
          meet(++round);
          double begin = now();
          launch_nothing(streams[r]);
          MUST(cudaStreamSynchronize(streams[r]));
          both_empty[r].push_back(now() - begin);
          meet(++round);
          begin = now();
          launch(Dtype::f32, ReduceOp::sum, prepared.launches[r], streams[r]);
          MUST(cudaStreamSynchronize(streams[r]));
          times[r].push_back(now() - begin);
        }
      };
      std::thread other(rank, 1);
      rank(0);
      other.join();
      std::printf("all_reduce 2 ranks as threads %zu B, %u channels: %.2f us; empty kernel by two threads at once %.2f us: %.2fx; by one %.2fx\n", bytes, channels,
                  1e6 * median(times[0]), 1e6 * median(both_empty[0]), median(times[0]) / median(both_empty[0]), median(times[0]) / median(empty));
      std::fflush(stdout);
    }
  }
}

void graph() {
  GpuMemory memory;
  World world(memory, 4, 8, 1 << 20, 1 << 20);
  const Prepared prepared = prepare_all_reduce(world, 4, "flat", 65536, {.in_place = true});
  std::vector<float> ones(16384, 1.0F);
  for (int r = 0; r < 4; ++r) memory.put(world.inputs[static_cast<std::size_t>(r)], ones.data(), 65536);
  std::vector<cudaGraphExec_t> graphs(4);
  for (std::size_t r = 0; r < 4; ++r) {
    cudaGraph_t one;
    MUST(cudaStreamBeginCapture(streams[r], cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < 50; ++k) launch(Dtype::f32, ReduceOp::sum, prepared.launches[r], streams[r]);
    MUST(cudaStreamEndCapture(streams[r], &one));
    MUST(cudaGraphInstantiate(&graphs[r], one, 0));
  }
  std::vector<double> times;
  for (int i = 0; i < 20; ++i) {
    for (int r = 0; r < 4; ++r) memory.put(world.inputs[static_cast<std::size_t>(r)], ones.data(), 65536);
    const double begin = now();
    for (std::size_t r = 0; r < 4; ++r) MUST(cudaGraphLaunch(graphs[r], streams[r]));
    MUST(cudaDeviceSynchronize());
    times.push_back(now() - begin);
  }
  std::vector<float> got(16384);
  memory.get(got.data(), world.inputs[3], 65536);
  long bad = 0;
  float want = 1;
  for (int k = 0; k < 50; ++k) want *= 4;
  for (const float x : got) bad += x != want;
  std::printf("graph of 50 all_reduces, 4 ranks, 64 KiB: %.1f us, %.2f us each; %ld wrong (%g, want %g)\n", 1e6 * median(times), 1e6 * median(times) / 50, bad, got[0], want);
}

void late() {
  for (int trial = 0; trial < 5; ++trial) {
    GpuMemory memory;
    World world(memory, 4, 8, 1 << 20, 1 << 20);
    const Prepared prepared = prepare_all_reduce(world, 4, "flat", 65536, {});
    for (std::size_t r = 0; r < 3; ++r) launch(Dtype::f32, ReduceOp::sum, prepared.launches[r], streams[r]);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const bool waits = cudaStreamQuery(streams[0]) == cudaErrorNotReady;
    std::uint32_t named = 0;
    for (std::size_t r = 0; r < 3; ++r) named |= 1U << (*static_cast<volatile std::uint32_t*>(&world.status[r][0].late));
    const double begin = now();
    *static_cast<volatile std::uint32_t*>(world.stop) = 1;
    MUST(cudaDeviceSynchronize());
    std::printf("late rank 3: the others wait: %d, late ranks named: mask %x (want %x); after stop the host has them back in %.3f ms\n", waits, named, 1U << 4, 1e3 * (now() - begin));
  }
  GpuMemory memory;
  World world(memory, 2, 4, 1 << 20, 1 << 20);
  Prepared prepared = prepare_all_reduce(world, 2, "flat", 65536, {});
  prepared.launches[1].signature = 8;
  for (std::size_t r = 0; r < 2; ++r) launch(Dtype::f32, ReduceOp::sum, prepared.launches[r], streams[r]);
  MUST(cudaDeviceSynchronize());
  std::printf("ranks that mean other calls: rank 0 names %u, rank 1 names %u\n", world.status[0][0].mismatch - 1, world.status[1][0].mismatch - 1);
}

struct Meeting {
  std::atomic<int> at;
  cudaIpcMemHandle_t handles[4];
  std::uint64_t bases[4];
  std::atomic<int> stop;
  std::atomic<long> wrong;
  double times[4];
  double stopped_at[4];
};

// One rank as a process of its own. Its memory is one allocation, which the others map.
int process(int rank, int ranks, Meeting& meeting, bool dies) {
  int round = 0;
  const auto meet = [&] {
    meeting.at.fetch_add(1);
    ++round;
    while (meeting.at.load() < round * ranks) std::this_thread::yield();
  };
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  GpuMemory memory;
  const std::uint32_t channels = 16;
  const std::size_t mine = std::size_t{96} << 20;
  auto* base = static_cast<unsigned char*>(memory.allocate(mine));
  MUST(cudaIpcGetMemHandle(&meeting.handles[rank], base));
  meeting.bases[rank] = reinterpret_cast<std::uint64_t>(base);
  meet();
  std::vector<unsigned char*> at(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    void* mapped = base;
    if (r != rank) MUST(cudaIpcOpenMemHandle(&mapped, meeting.handles[r], cudaIpcMemLazyEnablePeerAccess));
    at[static_cast<std::size_t>(r)] = static_cast<unsigned char*>(mapped);
  }
  const std::size_t bytes = std::size_t{16} << 20;
  World world(memory, ranks, channels, 1 << 20, 64);
  Prepared prepared;
  for (const std::size_t length : {std::size_t{65536}, bytes}) {
    world.inputs.assign(static_cast<std::size_t>(ranks), base + (std::size_t{16} << 20));
    world.outputs.assign(static_cast<std::size_t>(ranks), base + (std::size_t{48} << 20));
    prepared = prepare_all_reduce(world, ranks, "flat", length, {});
    Launch one = prepared.launches[static_cast<std::size_t>(rank)];
    for (int r = 0; r < ranks; ++r) {
      unsigned char* place = at[static_cast<std::size_t>(r)];
      Arena arena;
      arena.counts = reinterpret_cast<std::uint64_t*>(place);
      arena.records = reinterpret_cast<Record*>(place + (1 << 16));
      arena.epochs = reinterpret_cast<std::uint64_t*>(place + (1 << 18));
      arena.scratch = place + (1 << 20);
      one.arenas[r] = arena;
      one.shifts[r] = reinterpret_cast<std::uint64_t>(place) - meeting.bases[r];
    }
    std::vector<float> data(length / 4);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 13) % 1000);
    memory.put(reinterpret_cast<void*>(one.input), data.data(), length);
    meet();
    std::vector<double> times;
    for (int i = 0; i < 10; ++i) {
      meet();
      const double begin = now();
      launch(Dtype::f32, ReduceOp::sum, one, stream);
      MUST(cudaStreamSynchronize(stream));
      times.push_back(now() - begin);
    }
    meeting.times[rank] = median(times);
    std::vector<float> got(data.size());
    memory.get(got.data(), reinterpret_cast<void*>(one.output), length);
    for (std::size_t i = 0; i < got.size(); ++i) {
      float want = 0;
      for (int r = 0; r < ranks; ++r) want += static_cast<float>((i * 7 + static_cast<std::size_t>(r) * 13) % 1000);
      meeting.wrong += got[i] != want;
    }
    meet();
    if (rank == 0) {
      std::printf("IPC, %d processes, all_reduce %zu B: %.1f us, %ld wrong\n", ranks, length, 1e6 * meeting.times[0], meeting.wrong.load());
      std::fflush(stdout);
    }
    if (dies && length == bytes) {
      if (rank == ranks - 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        raise(SIGKILL);
      }
      launch(Dtype::f32, ReduceOp::sum, one, stream);
      while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        if (meeting.stop.load() != 0) *static_cast<volatile std::uint32_t*>(world.stop) = 1;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
      meeting.stopped_at[rank] = now();
    }
  }
  return 0;
}

void processes(int ranks) {
  auto* meeting = static_cast<Meeting*>(mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  for (int r = 0; r < ranks; ++r) {
    const pid_t child = fork();
    if (child == 0) {
      std::_Exit(process(r, ranks, *meeting, true));
    }
    children.push_back(child);
  }
  double died = 0;
  for (std::size_t left = children.size(); left != 0; --left) {
    int status = 0;
    const pid_t child = wait(&status);
    if (WIFSIGNALED(status)) {
      died = now();
      meeting->stop = 1;
    } else if (WEXITSTATUS(status) != 0) {
      std::printf("process %d: exit code %d\n", child, WEXITSTATUS(status));
      for (const pid_t one : children) kill(one, SIGKILL);
    }
  }
  for (int r = 0; r < ranks - 1; ++r) {
    std::printf("IPC, %d processes: rank %d was killed; rank %d had its stream back after %.2f ms\n", ranks, ranks - 1, r, 1e3 * (meeting->stopped_at[r] - died));
  }
  std::fflush(stdout);
}

}  // namespace unisono::device

int main(int argc, char** argv) {
  using namespace unisono::device;
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
  const std::string what = argc > 1 ? argv[1] : "all";
  if (what == "ipc") {
    processes(2);
    processes(4);
    return 0;
  }
  cudaDeviceProp properties;
  MUST(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %d SMs\n", properties.name, properties.multiProcessorCount);
  streams.resize(8);
  for (auto& stream : streams) MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (what == "correct") correctness();
  if (what == "bandwidth") bandwidth();
  if (what == "sweep") sweep();
  if (what == "latency") latency();
  if (what == "graph") graph();
  if (what == "late") late();
  return 0;
}
