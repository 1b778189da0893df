// The kernel's source on the CPU: a thread for each block.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "device/block.h"
#include "gpu_check/cases.h"

namespace unisono::device {
namespace {

class ShimBlock {
 public:
  ShimBlock(std::uint32_t block, std::uint64_t seed) : block_(block), random_(seed) {}
  std::uint32_t thread() const { return 0; }
  std::uint32_t threads() const { return 1; }
  std::uint32_t block() const { return block_; }
  Shared& shared() { return shared_; }
  void sync() {}
  bool any(bool flag) { return flag; }
  void signal(std::uint64_t* word, std::uint64_t value) {
    if (random_() % 4 == 0) {
      std::this_thread::yield();
    }
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }
  bool reaches(const std::uint64_t* word, std::uint64_t value, const Launch& launch, std::uint32_t) {
    while (std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_acquire) < value) {
      if (std::atomic_ref(*const_cast<std::uint32_t*>(launch.stop)).load() != 0) {
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

 private:
  Shared shared_ = {};
  std::uint32_t block_;
  std::minstd_rand random_;
};

struct HostMemory : Memory {
  void* allocate(std::size_t bytes) override { return std::calloc(1, (bytes + 4095) / 4096 * 4096); }
  void* host(std::size_t bytes) override { return allocate(bytes); }
  void put(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void get(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
};

template <Dtype kDtype, ReduceOp kOp>
void launch_one(const Launch& launch, std::vector<std::thread>& threads) {
  for (std::uint32_t c = 0; c < launch.channels; ++c) {
    threads.emplace_back([&launch, c] {
      ShimBlock block(c, c + 77 * launch.rank);
      run_block<Combiner<kDtype, kOp>>(block, launch);
    });
  }
}

}  // namespace
}  // namespace unisono::device

#include "device/dispatch.h"

int main() {
  using namespace unisono;
  using namespace unisono::device;
  HostMemory memory;
  long wrong = 0;
  for (const int ranks : {3, 4}) {
    World world(memory, ranks, 2, 4 << 20, 4 << 20);
    std::mt19937_64 random(static_cast<unsigned>(ranks));
    Checks checks(memory, world, ranks, [](Dtype dtype, ReduceOp op, const Prepared& prepared) {
      std::vector<std::thread> threads;
      std::vector<Launch> launches = prepared.launches;
      for (Launch& launch : launches) {
        launch.multiplies = op == ReduceOp::premul_sum;
        launch.factor = 0.75;
        static const std::uint64_t none[kMaxRanks] = {};
        launch.shifts = none;
        dispatch(dtype, op, [&](auto d, auto o) { launch_one<decltype(d)::value, decltype(o)::value>(launch, threads); });
      }
      for (auto& thread : threads) {
        thread.join();
      }
    }, 5);
    check_catalog(checks, ranks, random);
    std::printf("ranks %d: catalogue %ld checked, %ld wrong\n", ranks, checks.checked, checks.wrong);
    std::fflush(stdout);
    check_kernels(checks, random);
    std::printf("ranks %d: all %ld checked, %ld wrong\n", ranks, checks.checked, checks.wrong);
    std::fflush(stdout);
    wrong += checks.wrong;
  }
  return wrong != 0;
}
