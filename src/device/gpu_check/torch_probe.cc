// The kernels for PyTorch's tensors, of processes on one GPU: enough for DDP's hook.
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "gpu_check/world.h"

namespace unisono::device {
const void* kernel_f32(ReduceOp op);

namespace {
void must(cudaError_t error, int line) {
  if (error != cudaSuccess) {
    std::printf("FAILED line %d: %s\n", line, cudaGetErrorString(error));
    std::fflush(stdout);
    std::_Exit(3);
  }
}
#define MUST(call) must(call, __LINE__)

struct GpuMemory : Memory {
  void* allocate(std::size_t bytes) override {
    void* result = nullptr;
    MUST(cudaMalloc(&result, bytes));
    MUST(cudaMemset(result, 0, bytes));
    MUST(cudaDeviceSynchronize());
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
};

struct Meeting {
  std::atomic<int> at;
  cudaIpcMemHandle_t handles[8];
  std::uint64_t bases[8];
};

GpuMemory memory;
Meeting* meeting;
int rank_, ranks_;
unsigned char* base;
std::vector<unsigned char*> at;
std::unique_ptr<World> world;
constexpr std::size_t kInput = std::size_t{16} << 20;
constexpr std::size_t kOutput = std::size_t{80} << 20;
}  // namespace
}  // namespace unisono::device

using namespace unisono;
using namespace unisono::device;

extern "C" void probe_open(int rank, int ranks, const char* path) {
  rank_ = rank;
  ranks_ = ranks;
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (ftruncate(file, sizeof(Meeting)) != 0) std::_Exit(4);
  meeting = static_cast<Meeting*>(mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  base = static_cast<unsigned char*>(memory.allocate(std::size_t{160} << 20));
  MUST(cudaIpcGetMemHandle(&meeting->handles[rank], base));
  meeting->bases[rank] = reinterpret_cast<std::uint64_t>(base);
  meeting->at.fetch_add(1);
  while (meeting->at.load() < ranks) std::this_thread::yield();
  for (int r = 0; r < ranks; ++r) {
    void* mapped = base;
    if (r != rank) MUST(cudaIpcOpenMemHandle(&mapped, meeting->handles[r], cudaIpcMemLazyEnablePeerAccess));
    at.push_back(static_cast<unsigned char*>(mapped));
  }
  world = std::make_unique<World>(memory, ranks, 16, std::size_t{1} << 20, 64);
  world->inputs.assign(static_cast<std::size_t>(ranks), base + kInput);
  world->outputs.assign(static_cast<std::size_t>(ranks), base + kOutput);
}

// The average over the ranks, in place, on this stream. Nothing waits on the host.
extern "C" void probe_average(float* data, std::size_t count, void* stream_pointer) {
  auto* stream = static_cast<cudaStream_t>(stream_pointer);
  static std::vector<std::pair<std::size_t, Launch>> known;  // buckets have the same few lengths
  const Launch* found = nullptr;
  for (const auto& [length, launch] : known) {
    found = length == count ? &launch : found;
  }
  if (found == nullptr) {
    MUST(cudaDeviceSynchronize());
    static std::vector<std::unique_ptr<World>> worlds;  // each keeps the images of one length
    worlds.push_back(std::make_unique<World>(memory, ranks_, 16, std::size_t{1} << 20, 64));
    World& one = *worlds.back();
    one.inputs = world->inputs;
    one.outputs = world->outputs;
    const Algorithm& algorithm = *find_algorithm(Collective::all_reduce, "flat");
    const Schedule schedule = build_schedule(algorithm, complete(algorithm, {.ranks = ranks_}));
    const std::vector<engine::Sizes> sizes(static_cast<std::size_t>(ranks_), {.element = 4, .count = count});
    Launch launch = one.prepare(schedule, sizes, {}).launches[static_cast<std::size_t>(rank_)];
    for (int r = 0; r < ranks_; ++r) {
      unsigned char* place = at[static_cast<std::size_t>(r)];
      launch.arenas[r] = {reinterpret_cast<std::uint64_t*>(place), reinterpret_cast<Record*>(place + (1 << 16)),
                          reinterpret_cast<std::uint64_t*>(place + (1 << 18)), place + (1 << 20)};
      launch.shifts[r] = reinterpret_cast<std::uint64_t>(place) - meeting->bases[r];
    }
    known.emplace_back(count, launch);
    found = &known.back().second;
  }
  MUST(cudaMemcpyAsync(base + kInput, data, count * 4, cudaMemcpyDeviceToDevice, stream));
  Launch launch = *found;
  void* arguments[] = {&launch};
  MUST(cudaLaunchKernel(kernel_f32(ReduceOp::avg), dim3(launch.channels), dim3(512), arguments, 0, stream));
  MUST(cudaMemcpyAsync(data, base + kOutput, count * 4, cudaMemcpyDeviceToDevice, stream));
}
