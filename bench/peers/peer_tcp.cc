// unisono over TCP, from the engine down: all_reduce of f32 by the algorithms that suit a network.
#include <sched.h>

#include <cstdio>
#include <cstdlib>

#include "algorithms/catalog.h"
#include "engine/bound_program.h"
#include "engine/executor.h"
#include "kernels/kernels.h"
#include "peers/control.h"
#include "peers/mesh.h"
#include "transport/tcp/tcp_transport.h"

#ifndef UNISONO_BENCH_VERSION
#error "the build defines UNISONO_BENCH_VERSION"
#endif

namespace unisono::bench {
namespace {

constexpr int kSpin = 20'000;
constexpr int kYields = 100;

std::vector<int> members_of(int size) {
  std::vector<int> members;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(rank);
  }
  return members;
}

int setting(const char* name, int usual) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return text != nullptr ? std::atoi(text) : usual;
}

// Between two ranks one exchange of everything is the least there is. Among more, what is sent
// counts more than the steps once a vector is long.
const char* choose(std::size_t bytes, int size) {
  const char* forced = std::getenv("UNISONO_BENCH_ALGORITHM");  // NOLINT(concurrency-mt-unsafe)
  if (forced != nullptr) {
    return forced;
  }
  const bool power_of_two = (size & (size - 1)) == 0;
  return size == 2 || bytes <= (std::size_t{128} << 10) ? "recursive_doubling"
         : power_of_two                                 ? "halving_doubling"
                                                        : "ring";
}

// Schedule, program and memory of one row.
struct Prepared {
  Schedule schedule;
  std::vector<engine::ChunkPlace> places;
  engine::BoundProgram program;
  std::vector<std::byte> scratch;
  engine::Operation operation;
};

class TcpPeer final : public Peer {
 public:
  explicit TcpPeer(const LaunchOptions& launch)
      : crowded_(launch.size > cpu_count()),
        spin_(setting("UNISONO_BENCH_SPIN", crowded_ ? 0 : kSpin)),
        yields_(setting("UNISONO_BENCH_YIELDS", kYields)),
        connections_(launch.rank, connect_mesh(launch, "mesh")),
        transport_(connections_, {.group = 1}, members_of(launch.size), launch.rank),
        executor_(transport_, !crowded_) {}

  std::string name() const override { return "unisono"; }
  std::string version() const override { return UNISONO_BENCH_VERSION; }
  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.ranks(); }

  std::function<void()> bind(const Operation& operation) override {
    if (operation.kind != Kind::all_reduce || operation.memory != Memory::ordinary) {
      return {};
    }
    const std::size_t bytes = operation.count * size_of(operation.dtype);
    auto made = std::make_shared<Prepared>();
    const Algorithm* algorithm = find_algorithm(Collective::all_reduce, choose(bytes, size()));
    made->schedule = build_schedule(*algorithm, {.ranks = size()});
    const auto element = static_cast<int>(size_of(operation.dtype));
    made->places =
        engine::lay_out(made->schedule, rank(),
                        {.element = static_cast<std::size_t>(element), .count = operation.count});
    made->program = engine::bind(engine::lower(made->schedule, rank(), {.multicast = false}),
                                 made->places, static_cast<std::size_t>(element),
                                 engine::extent_of(made->schedule, rank(), made->places));
    made->scratch.resize(made->program.scratch_bytes + 64);
    made->operation = {.program = &made->program,
                       .buffers = {static_cast<std::byte*>(operation.in),
                                   static_cast<std::byte*>(operation.out), made->scratch.data()},
                       .output_bytes = bytes,
                       .reducer = {.kernel = kernels::find_reduce(operation.dtype, ReduceOp::sum)},
                       .signature = 42};
    return [this, made] { run(made->operation); };
  }

 private:
  void run(const engine::Operation& operation) {
    executor_.start(operation);
    for (int looks = 0;;) {
      const engine::Progress progress = executor_.poll();
      if (progress == engine::Progress::finished) {
        return;
      }
      if (progress == engine::Progress::failed || connections_.failure()) {
        std::fprintf(stderr, "rank %d: %s\n", rank(), describe(connections_.failure()).c_str());
        std::abort();
      }
      looks = progress == engine::Progress::advanced ? 0 : looks + 1;
      if (looks > spin_ + yields_) {
        connections_.wait(1000);
      } else if (looks > spin_) {
        sched_yield();
      }
    }
  }

  bool crowded_;
  int spin_;
  int yields_;
  tcp::Connections connections_;
  tcp::TcpTransport transport_;
  engine::Executor executor_;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const LaunchOptions& options) {
  return std::make_unique<TcpPeer>(options);
}

}  // namespace unisono::bench
