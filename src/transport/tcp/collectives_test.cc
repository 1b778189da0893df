// Collectives by the real engine over real connections: each rank is a thread, with two groups at
// once.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalog.h"
#include "engine/bound_program.h"
#include "engine/executor.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/testing.h"

namespace unisono::tcp {
namespace {

struct Job {
  const Algorithm* algorithm;
  int ranks;
  std::size_t count;  // of u64
};

std::uint64_t value(int rank, std::size_t i) {
  return static_cast<std::uint64_t>(rank + 1) * 1000 + i * 7;
}

// Runs one all_reduce. Returns true if the result is right.
bool run(Connections& connections, TcpTransport& transport, const Job& job) {
  const Schedule schedule = build_schedule(*job.algorithm, {.ranks = job.ranks});
  const int rank = transport.rank();
  const auto places = engine::lay_out(schedule, rank, {.element = 8, .count = job.count});
  const engine::BoundProgram program =
      engine::bind(engine::lower(schedule, rank, {.multicast = false}), places, 8,
                   engine::extent_of(schedule, rank, places));
  std::vector<std::uint64_t> in(job.count + 1);
  std::vector<std::uint64_t> out(job.count + 1);
  std::vector<std::byte> scratch(program.scratch_bytes + 64);
  for (std::size_t i = 0; i < job.count; ++i) {
    in[i] = value(rank, i);
  }
  engine::Executor executor(transport, false);
  executor.start({.program = &program,
                  .buffers = {reinterpret_cast<std::byte*>(in.data()),
                              reinterpret_cast<std::byte*>(out.data()), scratch.data()},
                  .output_bytes = job.count * 8,
                  .reducer = {.kernel = kernels::find_reduce(Dtype::u64, ReduceOp::sum)},
                  .signature = job.count});
  for (;;) {
    const engine::Progress progress = executor.poll();
    if (progress == engine::Progress::finished) {
      break;
    }
    if (progress == engine::Progress::failed || connections.failure()) {
      return false;
    }
    if (progress == engine::Progress::idle) {
      connections.wait(1000);
    }
  }
  for (std::size_t i = 0; i < job.count; ++i) {
    std::uint64_t want = 0;
    for (int r = 0; r < job.ranks; ++r) {
      want += value(r, i);
    }
    if (out[i] != want) {
      return false;
    }
  }
  return true;
}

void expect_right(int ranks, int streams, const SocketOptions& socket,
                  const std::vector<std::size_t>& counts, const Protection& protection = {}) {
  Mesh mesh = socket_mesh(ranks, streams, "127.0.0.1", socket, protection);
  std::vector<int> members;
  std::vector<std::unique_ptr<Connections>> connections;
  for (int rank = 0; rank < ranks; ++rank) {
    members.push_back(rank);
    connections.push_back(
        std::make_unique<Connections>(rank, std::move(mesh[static_cast<std::size_t>(rank)])));
  }
  // Each rank has two threads, each with its own group.
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(2 * static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      Connections& mine = *connections[i / 2];
      TcpTransport transport(mine, {.group = 1 + i % 2}, members, mine.rank());
      for (const Algorithm* algorithm : catalog()) {
        if (algorithm->collective != Collective::all_reduce ||
            (algorithm->supports != nullptr && !algorithm->supports({.ranks = ranks}))) {
          continue;
        }
        for (const std::size_t count : counts) {
          if (wrong[i].empty() && !run(mine, transport, {algorithm, ranks, count})) {
            wrong[i] = std::string(algorithm->name) + " of " + std::to_string(count) + ": " +
                       describe(mine.failure());
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::string& text : wrong) {
    EXPECT_EQ(text, "");
  }
}

TEST(TcpCollectives, AreRight) {
  expect_right(3, 1, {}, {0, 1, 5, 500, 20'000, 300'000});
}

TEST(TcpCollectives, AreRightOverSeveralStreams) {
  expect_right(4, 3, {}, {1, 3000, 200'000});
}

TEST(TcpCollectives, AreRightEncrypted) {
  expect_right(3, 1, {}, {0, 1, 5, 500, 20'000, 300'000}, {.tls = true});
}

TEST(TcpCollectives, AreRightEncryptedOverSeveralStreamsWithChecksums) {
  expect_right(4, 3, {}, {1, 3000, 100'000}, {.tls = true, .checksum = true});
}

TEST(TcpCollectives, AreRightWithChecksums) {
  expect_right(3, 2, {}, {0, 1, 20'000, 300'000}, {.checksum = true});
}

TEST(TcpCollectives, AreRightThroughTinyBuffers) {
  expect_right(3, 2, {.send_buffer = 2048}, {1, 200, 40'000});
}

}  // namespace
}  // namespace unisono::tcp
