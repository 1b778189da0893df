// Measures reductions and copies on one core, in GB/s of memory read and written.
//
// reduce/DTYPE/OP/SOURCES/TARGETS/STORE: `bytes` is the size of one source. reduce_count compares
// sums of equal *count*, because narrow dtypes must not be slower than f32.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "unisono/types.hpp"

namespace unisono::kernels {
namespace {

struct Shape {
  Dtype dtype = Dtype::f32;
  ReduceOp op = ReduceOp::sum;
  int sources = 2;
  int targets = 1;
  Store store = Store::cached;
};

// Buffers whose start addresses differ by a few cache lines. With page-aligned memory, equal
// offsets of all buffers would fall into one cache set.
class Buffers {
 public:
  Buffers(int many, std::size_t bytes) {
    for (int i = 0; i < many; ++i) {
      const std::size_t skew = 64 + 320 * static_cast<std::size_t>(i);
      auto& memory = memory_.emplace_back(bytes + skew + 64, std::byte{0x21});
      const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
      pointers_.push_back(memory.data() + (64 - address % 64) % 64 + (skew & ~std::size_t{63}) -
                          64);
    }
  }
  void** data() { return pointers_.data(); }

 private:
  std::vector<std::vector<std::byte>> memory_;
  std::vector<void*> pointers_;
};

void reduce(benchmark::State& state, Shape shape, bool by_count) {
  const std::size_t size = size_of(shape.dtype);
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / (by_count ? 1 : size);
  Buffers sources(shape.sources, count * size);
  Buffers targets(shape.targets, count * size);
  const ReduceFunction function = find_reduce(shape.dtype, shape.op);
  for (auto _ : state) {
    function(targets.data(), shape.targets, sources.data(), shape.sources, count, shape.store);
    benchmark::ClobberMemory();
  }
  fence_streaming();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(count * size) *
                          (shape.sources + shape.targets));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

template <class Function>
void copy_with(benchmark::State& state, Function function) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Buffers buffers(2, bytes);
  for (auto _ : state) {
    function(buffers.data()[0], buffers.data()[1], bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 2);
}

const char* name(Store store) {
  return store == Store::cached ? "cached" : "streaming";
}

void register_reduce(const Shape& shape) {
  const std::string label = "reduce/" + std::string(to_string(shape.dtype)) + "/" +
                            std::string(to_string(shape.op)) + "/" + std::to_string(shape.sources) +
                            "/" + std::to_string(shape.targets) + "/" + name(shape.store);
  benchmark::RegisterBenchmark(label.c_str(), reduce, shape, false)
      ->Arg(4 << 10)
      ->Arg(256 << 10)
      ->Arg(16 << 20)
      ->Arg(128 << 20);
}

void register_all() {
  for (const Store store : {Store::cached, Store::streaming}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8e4m3, Dtype::f8e5m2}) {
      register_reduce({.dtype = dtype, .store = store});
    }
  }
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    register_reduce({.dtype = dtype, .sources = 4});
    register_reduce({.dtype = dtype, .sources = 8});
    register_reduce({.dtype = dtype, .sources = 2, .targets = 2});
    register_reduce({.dtype = dtype, .op = ReduceOp::max});
  }
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8e4m3, Dtype::f8e5m2}) {
    const std::string label = "reduce_count/" + std::string(to_string(dtype));
    benchmark::RegisterBenchmark(label.c_str(), reduce, Shape{.dtype = dtype}, true)
        ->Arg(1)
        ->Arg(2)
        ->Arg(8)
        ->Arg(16)
        ->Arg(64)
        ->Arg(1000)
        ->Arg(4 << 10)
        ->Arg(64 << 10)
        ->Arg(1 << 20)
        ->Arg(32 << 20);
  }
  for (const std::int64_t bytes : {8, 64, 100, 256, 4 << 10, 256 << 10, 16 << 20, 128 << 20}) {
    benchmark::RegisterBenchmark("copy/memcpy", [](benchmark::State& state) {
      copy_with(state, [](void* to, const void* from, std::size_t n) { std::memcpy(to, from, n); });
    })->Arg(bytes);
    for (const Store store : {Store::cached, Store::streaming}) {
      benchmark::RegisterBenchmark((std::string("copy/") + name(store)).c_str(),
                                   [store](benchmark::State& state) {
                                     copy_with(state,
                                               [store](void* to, const void* from, std::size_t n) {
                                                 copy(to, from, n, store);
                                               });
                                   })
          ->Arg(bytes);
    }
  }
}

}  // namespace
}  // namespace unisono::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  benchmark::AddCustomContext("simd", unisono::kernels::target_name());
  unisono::kernels::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
