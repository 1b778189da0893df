// Measures the cost of the parallel layer. Variants alternate, so that noise affects all of them
// alike; results are medians. Start it with mpirun.mpich -n 2, or with unisono run -n 2 if it was
// built without MPICH. An argument selects one part: redistribute, overlap, gradients, teams or
// pipeline; the last two work with any number of ranks. To use TCP, set UNISONO_TRANSPORT=tcp and
// UNISONO_ADDRESS=127.0.0.1:PORT.
#ifdef UNISONO_MPI
#include <mpi.h>
#endif

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/quantile.h"
#include "pipeline/catalog.h"
#include "pipeline/run.h"
#include "unisono/parallel/gradient_buckets.hpp"
#include "unisono/parallel/overlap.hpp"
#include "unisono/parallel/pipeline.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/team.hpp"
#include "unisono/unisono.hpp"

namespace {

namespace up = unisono::parallel;
using unisono::Communicator;

constexpr int kTurns = 21;
constexpr std::size_t kSide = 4096;

struct Variant {
  const char* name;
  std::function<void()> run;
  std::vector<double> ms = {};
};

// Returns the time of the slowest rank.
double timed(Communicator& comm, const std::function<void()>& run) {
  comm.barrier();
  const auto begin = std::chrono::steady_clock::now();
  run();
  std::vector<double> took = {
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count()};
  comm.all_reduce(took, unisono::max);
  return took[0];
}

void measure(Communicator& comm, const char* title, std::vector<Variant> variants,
             int turns = kTurns) {
  for (int turn = 0; turn < turns + 2; ++turn) {
    for (Variant& variant : variants) {
      const double ms = timed(comm, variant.run);
      if (turn >= 2) {
        variant.ms.push_back(ms);
      }
    }
  }
  if (comm.rank() == 0) {
    std::printf("%s\n", title);
    const double first = unisono::median(variants.front().ms);
    for (Variant& variant : variants) {
      std::printf("  %-44s %8.3f ms   %5.2f\n", variant.name, unisono::median(variant.ms),
                  unisono::median(variant.ms) / first);
    }
    std::fflush(stdout);
  }
}

struct Memory {
  Memory(Communicator& comm, std::size_t bytes) : region(comm.allocate(bytes)), plain(bytes) {
    std::memset(region.bytes().data(), 1, bytes);
  }
  unisono::Region region;
  std::vector<std::byte> plain;
  up::Tensor tensor(bool registered, std::vector<std::size_t> shape) {
    return up::Tensor::packed(registered ? region.bytes().data() : plain.data(),
                              unisono::Dtype::bf16, std::move(shape));
  }
};

// Measures Shard(a) -> Shard(b) of a tensor whose dimensions are divisible by the number of ranks.
void transposes(Communicator& comm, const char* title, const std::vector<std::size_t>& whole,
                std::size_t a, std::size_t b) {
  const auto n = static_cast<std::size_t>(comm.size());
  std::vector<std::size_t> from = whole;
  std::vector<std::size_t> to = whole;
  from[a] /= n;
  to[b] /= n;
  std::size_t count = 1;
  for (const std::size_t size : whole) {
    count *= size;
  }
  const std::size_t bytes = count / n * sizeof(unisono::bf16);
  Memory in(comm, bytes);
  Memory out(comm, bytes);
  Memory all(comm, bytes * n);
  const auto range = up::shard_range(whole[b], comm.size(), comm.rank());
  const up::Tensor strip = all.tensor(true, whole).slice(b, range.first, range.count);
  std::vector<Variant> variants = {
      {"one strided copy of as many bytes", [&] { up::copy(strip, out.tensor(true, to)); }},
      {"redistribute, registered memory",
       [&] {
         up::redistribute(comm, in.tensor(true, from), up::Shard(a), out.tensor(true, to),
                          up::Shard(b));
       }},
      {"redistribute, ordinary memory", [&] {
         up::redistribute(comm, in.tensor(false, from), up::Shard(a), out.tensor(false, to),
                          up::Shard(b));
       }}};
#ifdef UNISONO_MPI
  std::vector<std::byte> packed(bytes);
  std::vector<std::byte> received(bytes);
  variants.push_back(
      {"pack, MPI_Alltoall (MPICH), unpack", [&] {
         const up::Tensor source = in.tensor(false, from);
         const up::Tensor target = out.tensor(false, to);
         for (std::size_t peer = 0; peer < n; ++peer) {
           const up::Tensor part = source.slice(b, peer * to[b], to[b]);
           up::copy(part,
                    up::Tensor::packed(packed.data() + peer * bytes / n, part.dtype, part.shape));
         }
         MPI_Alltoall(packed.data(), static_cast<int>(bytes / n), MPI_BYTE, received.data(),
                      static_cast<int>(bytes / n), MPI_BYTE, MPI_COMM_WORLD);
         for (std::size_t peer = 0; peer < n; ++peer) {
           const up::Tensor part = target.slice(a, peer * from[a], from[a]);
           up::copy(up::Tensor::packed(received.data() + peer * bytes / n, part.dtype, part.shape),
                    part);
         }
       }});
#endif
  measure(comm, title, std::move(variants));
}

void gathers(Communicator& comm) {
  const auto n = static_cast<std::size_t>(comm.size());
  Memory in(comm, kSide * kSide / n * 2);
  Memory out(comm, kSide * kSide * 2);
  std::vector<Variant> variants;
  for (const std::size_t dim : {0U, 1U}) {
    std::vector<std::size_t> part = {kSide, kSide};
    part[dim] /= n;
    variants.push_back(
        {dim == 0 ? "along the outer dimension" : "along the inner dimension", [&, part, dim] {
           up::redistribute(comm, in.tensor(true, part), up::Shard(dim),
                            out.tensor(true, {kSide, kSide}), up::Replicate());
         }});
  }
  measure(comm, "Shard -> Replicate of [4096, 4096] bf16, registered memory", std::move(variants));
}

// Multiplies in registers for about the given time, or sleeps, like a rank whose device computes.
class Compute {
 public:
  explicit Compute(bool on_device) : on_device_(on_device) {
    for (int i = 0; i < 20; ++i) {  // take the best: other processes may have used the core
      const auto begin = std::chrono::steady_clock::now();
      turn(kTurnsToMeasure);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin;
      per_ms_ = std::max(per_ms_, kTurnsToMeasure / took.count());
    }
  }
  void run(double ms) {
    if (on_device_) {
      // A device works through a queue, so a late timer for one part must not delay the next part.
      using Clock = std::chrono::steady_clock;
      constexpr auto kLate = std::chrono::microseconds(200);
      const auto now = Clock::now();
      end_ = (now - end_ < kLate ? end_ : now) + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double, std::milli>(ms));
      std::this_thread::sleep_until(end_);
    } else {
      turn(static_cast<std::uint64_t>(ms * per_ms_));
    }
  }

 private:
  static constexpr std::uint64_t kTurnsToMeasure = 500'000;
  void turn(std::uint64_t count) {
    volatile double seed = 1.0000001;
    double value = seed;
    for (std::uint64_t i = 0; i < count; ++i) {
      value = value * 1.0000001 + 1e-9;
    }
    seed = value;
  }
  double per_ms_ = 1;
  bool on_device_;
  std::chrono::steady_clock::time_point end_ = {};
};

std::string where(const char* title, bool on_device) {
  return std::string(title) + (on_device ? ", on a device" : ", on the rank's core");
}

void overlaps(Communicator& comm, bool on_device) {
  constexpr double kComputeMs = 4;
  constexpr std::size_t kWidth = 1024;
  const auto n = static_cast<std::size_t>(comm.size());
  const std::size_t rows = 512 * n;
  std::vector<float> whole(rows * kWidth);
  std::vector<float> shard(rows / n * kWidth);
  const auto mine = std::span(whole).subspan(static_cast<std::size_t>(comm.rank()) * shard.size(),
                                             shard.size());  // in place
  Compute compute(on_device);
  const double block_ms = kComputeMs / comm.size();
  measure(
      comm, where("a product of 4 ms with 2 MiB a rank", on_device).c_str(),
      {{"compute alone", [&] { compute.run(kComputeMs); }},
       {"all_gather, then compute",
        [&] {
          comm.all_gather(mine, whole);
          compute.run(kComputeMs);
        }},
       {"all_gather_then",
        [&] {
          up::all_gather_then(comm, mine, whole, kWidth, [&](up::Range) { compute.run(block_ms); });
        }},
       {"compute, then reduce_scatter",
        [&] {
          compute.run(kComputeMs);
          comm.reduce_scatter(whole, shard, unisono::sum);
        }},
       {"then_reduce_scatter",
        [&] {
          up::then_reduce_scatter(comm, rows, shard, kWidth,
                                  [&](up::Range piece, std::span<float>) {
                                    compute.run(kComputeMs * static_cast<double>(piece.count) /
                                                static_cast<double>(rows));
                                  });
        }},
       {"compute, then all_reduce",
        [&] {
          compute.run(kComputeMs);
          comm.all_reduce(whole, unisono::sum);
        }},
       {"then_all_reduce, 8 blocks", [&] {
          up::then_all_reduce(comm, whole, kWidth, 8,
                              [&](up::Range, std::span<float>) { compute.run(kComputeMs / 8); });
        }}});
}

// Measures a backward pass of 200 ms whose gradients become ready in 50 equal parts.
void gradients(Communicator& comm, bool on_device) {
  constexpr double kBackwardMs = 200;
  constexpr std::size_t kGradients = 50;
  constexpr std::size_t kCount = 25'000'000 / kGradients;
  Compute compute(on_device);
  const double part_ms = kBackwardMs / kGradients;
  std::vector<float> plain(kGradients * kCount);
  up::GradientBuckets buckets(comm, {.zeroed = false});
  for (std::size_t i = 0; i < kGradients; ++i) {
    buckets.add("gradient " + std::to_string(i), kCount);
  }
  const auto backward = [&](const std::function<void(std::size_t)>& ready) {
    for (std::size_t i = 0; i < kGradients; ++i) {
      compute.run(part_ms);
      ready(i);
    }
  };
  measure(comm, where("gradients of 25 M parameters, a backward pass of 200 ms", on_device).c_str(),
          {{"backward alone", [&] { backward([](std::size_t) {}); }},
           {"backward, then all_reduce",
            [&] {
              backward([](std::size_t) {});
              comm.all_reduce(plain, unisono::avg);
            }},
           {"gradient buckets",
            [&] {
              buckets.begin();
              backward([&](std::size_t i) { buckets.ready(i); });
              buckets.finish();
            }}},
          7);
}

// Measures a plain call, a call by a team of one thread, and a call by two threads, of which the
// second is created for each run.
void teams(Communicator& comm) {
  unisono::Team one(comm, 1);
  unisono::Team two(comm, 2);
  for (const std::size_t bytes : {8U, 4U << 10, 64U << 10, 1U << 20, 16U << 20}) {
    std::vector<float> data(bytes / sizeof(float));
    const std::size_t calls = std::clamp<std::size_t>((4U << 20) / bytes, 1, 5000);
    const auto repeat = [&](const auto& call) {
      return [calls, call] {
        for (std::size_t i = 0; i < calls; ++i) {
          call();
        }
      };
    };
    const auto by_two = repeat([&] { two.all_reduce(0, data, unisono::max); });
    const auto second = repeat([&] { two.all_reduce(1, data, unisono::max); });
    const std::string title =
        std::to_string(calls) + " all_reduces of " + std::to_string(bytes) + " B";
    measure(comm, title.c_str(),
            {{"a plain call", repeat([&] { comm.all_reduce(data, unisono::max); })},
             {"a team of one", repeat([&] { one.all_reduce(0, data, unisono::max); })},
             {"a team of two", [&] {
                const std::jthread thread(second);
                by_two();
              }}});
  }
}

// Compares the pipeline runner with the simulated time, for stages that sleep for 5 ms.
void pipelines(Communicator& comm) {
  using std::chrono::milliseconds;
  constexpr milliseconds kStage{5};
  constexpr int kMicrobatches = 8;
  constexpr int kSteps = 21;
  for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
    const auto schedule =
        up::PipelineSchedule::by_name(name, {.ranks = comm.size(), .microbatches = kMicrobatches});
    const auto known = build(*unisono::pipeline::find_entry(name),
                             {.ranks = comm.size(), .chunks = 1, .microbatches = kMicrobatches});
    const double predicted = unisono::pipeline::run(known).makespan * kStage.count();
    const auto sleep = [&](const up::PipelinePass&) { std::this_thread::sleep_for(kStage); };
    up::PipelineStage stage{.stage = comm.rank()};
    if (comm.rank() + 1 < comm.size()) {
      stage.output = up::TensorSpec{.dtype = unisono::Dtype::f32, .shape = {64, 64}};
    }
    up::Pipeline pipeline(
        comm, schedule, {stage},
        {.forward = sleep,
         .backward = [&](const up::PipelinePass&) { std::this_thread::sleep_for(2 * kStage); },
         .backward_input = sleep,
         .backward_weight = sleep});
    Variant variant{.name = name, .run = [&] { pipeline.run_step(); }};
    for (int step = 0; step < kSteps + 2; ++step) {
      const double ms = timed(comm, variant.run);
      if (step >= 2) {
        variant.ms.push_back(ms);
      }
    }
    if (comm.rank() == 0) {
      const double usual = unisono::median(variant.ms);
      std::printf("%-8s %8.2f ms, predicted %8.2f: %+.2f %%\n", name, usual, predicted,
                  100 * (usual / predicted - 1));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
#ifdef UNISONO_MPI
  MPI_Init(&argc, &argv);
#endif
  int status = 0;
  try {
    auto comm = Communicator::connect();
    const std::string only = argc > 1 ? argv[1] : "";
    const auto wants = [&](const char* part) { return only.empty() || only == part; };
    if (wants("redistribute")) {
      transposes(comm, "Shard(0) -> Shard(1) of [4096, 4096] bf16", {kSide, kSide}, 0, 1);
      transposes(comm, "Ulysses: [4096, 32, 128] bf16, sequence -> heads", {4096, 32, 128}, 0, 1);
      transposes(comm, "Ulysses: [4096, 32, 128] bf16, heads -> sequence", {4096, 32, 128}, 1, 0);
      gathers(comm);
    }
    if (wants("overlap")) {
      overlaps(comm, false);
      overlaps(comm, true);
    }
    if (wants("gradients")) {
      gradients(comm, false);
      gradients(comm, true);
    }
    if (wants("teams")) {
      teams(comm);
    }
    if (wants("pipeline")) {
      pipelines(comm);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    status = 1;
  }
#ifdef UNISONO_MPI
  MPI_Finalize();
#endif
  return status;
}
