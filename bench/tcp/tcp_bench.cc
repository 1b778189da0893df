// Compares all_reduce over TCP on the loopback interface, with and without checksums, with a raw
// exchange of as many bytes over such sockets. The variants alternate:
//
//   bench_tcp [--ranks N] [--algorithm NAME] [--streams S] [--slots S] [--spin LOOKS]
//             [--yields TIMES] [--sizes BYTES,...] [--rounds N] [--host ADDRESS]
//
// Ranks are threads; rank r runs on CPU r if there are enough CPUs. In the raw exchange, each of
// two ranks sends all bytes to the other, which is the minimum for an all_reduce of two ranks.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalog.h"
#include "engine/bound_program.h"
#include "engine/executor.h"
#include "kernels/kernels.h"
#include "peers/control.h"
#include "peers/timing.h"
#include "tcp/raw.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/testing.h"

namespace unisono::bench {
namespace {

struct Options {
  int ranks = 2;
  int streams = 1;
  int slots = 8;
  int spin = -1;
  int yields = 100;
  int rounds = 5;
  std::string algorithm = "";
  std::string host = "127.0.0.1";
  std::vector<std::size_t> sizes = {8, 1024, 4096, 65536, 1 << 20, 16 << 20, 64 << 20};
};

// All threads leave together. Waiting threads yield, because there may be more threads than CPUs.
class Barrier {
 public:
  explicit Barrier(int ranks) : ranks_(ranks) {}
  void arrive() {
    const int turn = turn_.load();
    if (arrived_.fetch_add(1) + 1 == ranks_) {
      arrived_.store(0);
      turn_.fetch_add(1);
    }
    while (turn_.load() == turn) {
      sched_yield();
    }
  }

 private:
  int ranks_;
  std::atomic<int> arrived_ = 0;
  std::atomic<int> turn_ = 0;
};

struct Shared {
  Options options;
  bool oversubscribed;  // more ranks than CPUs
  Barrier barrier;
  tcp::Mesh raw;
  tcp::Mesh plain;
  tcp::Mesh checked;
};

std::string algorithm_for(const Options& options, std::size_t bytes) {
  return !options.algorithm.empty() ? options.algorithm
         : bytes <= 32768           ? "recursive_doubling"
                                    : "ring";
}

// A rank's connections, with or without checksums.
struct Side {
  Side(const Shared& shared, tcp::Mesh& mesh, int rank)
      : connections(rank, std::move(mesh[static_cast<std::size_t>(rank)]),
                    {.slots = shared.options.slots}),
        transport(connections, {.group = 1}, members(shared.options.ranks), rank),
        executor(transport, !shared.oversubscribed) {}
  static std::vector<int> members(int ranks) {
    std::vector<int> all;
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(rank);
    }
    return all;
  }

  tcp::Connections connections;
  tcp::TcpTransport transport;
  engine::Executor executor;
};

class Rank {
 public:
  Rank(Shared& shared, int rank)
      : plain(shared, shared.plain, rank),
        checked(shared, shared.checked, rank),
        shared_(shared),
        rank_(rank),
        spin_(shared.options.spin >= 0 ? shared.options.spin
              : shared.oversubscribed  ? 0
                                       : 20000),
        yields_(shared.options.yields) {}

  void prepare(std::size_t bytes) {
    in_.assign(bytes, std::byte{1});
    out_.assign(bytes, std::byte{2});
    const Algorithm* algorithm =
        find_algorithm(Collective::all_reduce, algorithm_for(shared_.options, bytes));
    schedule_ = build_schedule(*algorithm, {.ranks = shared_.options.ranks});
    places_ = engine::lay_out(schedule_, rank_, {.element = 4, .count = bytes / 4});
    program_ = engine::bind(engine::lower(schedule_, rank_, {.multicast = false}), places_, 4,
                            engine::extent_of(schedule_, rank_, places_));
    scratch_.assign(program_.scratch_bytes + 64, std::byte{0});
  }
  void all_reduce(Side& side) {
    side.executor.start({.program = &program_,
                         .buffers = {in_.data(), out_.data(), scratch_.data()},
                         .output_bytes = out_.size(),
                         .reducer = {.kernel = kernels::find_reduce(Dtype::u32, ReduceOp::sum)},
                         .signature = 42});
    for (int looks = 0;;) {
      const engine::Progress progress = side.executor.poll();
      if (progress == engine::Progress::finished) {
        return;
      }
      if (progress == engine::Progress::failed || side.connections.failure()) {
        std::fprintf(stderr, "rank %d: %s\n", rank_, describe(side.connections.failure()).c_str());
        std::abort();
      }
      looks = progress == engine::Progress::advanced ? 0 : looks + 1;
      if (looks > spin_ + yields_) {
        side.connections.wait(1000);
      } else if (looks > spin_) {
        sched_yield();
      }
    }
  }
  void check() const {
    const std::uint32_t want = 0x01010101U * static_cast<std::uint32_t>(shared_.options.ranks);
    for (std::size_t i = 0; i + 4 <= out_.size(); i += 4) {
      std::uint32_t got = 0;
      std::memcpy(&got, out_.data() + i, 4);
      if (got != want) {
        std::fprintf(stderr, "rank %d: wrong at byte %zu of %zu\n", rank_, i, out_.size());
        std::abort();
      }
    }
  }
  void raw_exchange() {
    auto& sockets =
        shared_.raw[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(1 - rank_)];
    std::vector<Flow> flows;
    const std::size_t n = sockets.size();
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t begin = out_.size() * i / n;
      flows.push_back({.socket = sockets[i].get(),
                       .out = in_.data() + begin,
                       .in = out_.data() + begin,
                       .bytes = out_.size() * (i + 1) / n - begin});
    }
    exchange(flows, std::size_t{256} << 10);
  }

  Side plain;
  Side checked;

 private:
  Shared& shared_;
  int rank_;
  int spin_;
  int yields_;
  std::vector<std::byte> in_, out_, scratch_;
  Schedule schedule_;
  std::vector<engine::ChunkPlace> places_;
  engine::BoundProgram program_;
};

int calls_of(std::size_t bytes) {
  return static_cast<int>(
      std::clamp<std::size_t>((std::size_t{256} << 20) / (bytes + 100'000), 4, 1000));
}

void play(Shared& shared, int rank) {
  const Options& options = shared.options;
  pin_rank(rank, options.ranks);
  Rank mine(shared, rank);
  for (const std::size_t bytes : options.sizes) {
    mine.prepare(bytes);
    std::vector<double> plain_us;
    std::vector<double> checked_us;
    std::vector<double> raw_us;
    const int calls = calls_of(bytes);
    const auto time = [&](std::vector<double>& samples, auto call) {
      const double tick_us = nanoseconds_per_tick() / 1000;
      call();
      shared.barrier.arrive();
      for (int i = 0; i < calls; ++i) {
        const std::uint64_t begin = ticks();
        call();
        samples.push_back(static_cast<double>(ticks() - begin) * tick_us);
      }
      shared.barrier.arrive();
    };
    for (int round = 0; round < options.rounds; ++round) {
      if (options.ranks == 2) {
        time(raw_us, [&] { mine.raw_exchange(); });
      }
      time(plain_us, [&] { mine.all_reduce(mine.plain); });
      mine.check();
      time(checked_us, [&] { mine.all_reduce(mine.checked); });
      mine.check();
    }
    if (rank == 0) {
      const double plain = quantile(plain_us, 0.5);
      const double took = quantile(checked_us, 0.5);
      std::printf("%10zu B  %-20s %10.2f us   without checksums %10.2f us   %.2fx", bytes,
                  algorithm_for(options, bytes).c_str(), took, plain, took / plain);
      if (!raw_us.empty()) {
        const double raw = quantile(raw_us, 0.5);
        std::printf("   raw exchange %10.2f us   %.2fx", raw, took / raw);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
  }
}

Options parse(int argc, char** argv) {
  Options options;
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < argc; i += 2) {
    given[argv[i]] = argv[i + 1];
  }
  const auto number = [&](const char* name, int usual) {
    return given.count(name) != 0 ? std::atoi(given[name].c_str()) : usual;
  };
  options.ranks = number("--ranks", options.ranks);
  options.streams = number("--streams", options.streams);
  options.slots = number("--slots", options.slots);
  options.spin = number("--spin", options.spin);
  options.yields = number("--yields", options.yields);
  options.rounds = number("--rounds", options.rounds);
  options.algorithm = given["--algorithm"];
  options.host = given.count("--host") != 0 ? given["--host"] : options.host;
  if (given.count("--sizes") != 0) {
    options.sizes.clear();
    std::istringstream list(given["--sizes"]);
    for (std::string size; std::getline(list, size, ',');) {
      options.sizes.push_back(static_cast<std::size_t>(std::atoll(size.c_str())));
    }
  }
  return options;
}

}  // namespace
}  // namespace unisono::bench

int main(int argc, char** argv) {
  using namespace unisono;
  const bench::Options options = bench::parse(argc, argv);
  bench::Shared shared{.options = options,
                       .oversubscribed = options.ranks > bench::cpu_count(),
                       .barrier = bench::Barrier(options.ranks),
                       .raw = tcp::socket_mesh(2, options.streams, options.host),
                       .plain = tcp::socket_mesh(options.ranks, options.streams, options.host),
                       .checked = tcp::socket_mesh(options.ranks, options.streams, options.host, {},
                                                   {.checksum = true})};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank) {
    threads.emplace_back([&shared, rank] { bench::play(shared, rank); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return 0;
}
