// Kills a rank while gradients are in transit, or while a checkpoint is saved: the other ranks
// report which rank, and do not hang, and the previous checkpoint is intact.
#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/testing.h"
#include "unisono/parallel/checkpoint.hpp"
#include "unisono/parallel/gradient_buckets.hpp"
#include "unisono/parallel/placement.hpp"
#include "unisono/parallel/sharded_state.hpp"

namespace unisono::parallel {
namespace {

constexpr int kRanks = 3;
constexpr int kVictim = 1;

// Returns the errors of the survivors.
template <typename Body>
void expect_told(const Body& body) {
  const std::string job = comm::testing::unique_name("parallel-kill");
  const auto said = comm::testing::as_processes(kRanks, [&](int rank) -> std::string {
    ConnectOptions options = comm::testing::options_for(rank, kRanks, job);
    options.timeout_ms = 60'000;
    Communicator comm = Communicator::connect(options);
    try {
      body(comm);
    } catch (const Error& error) {
      return std::string(to_string(error.code())) + " " + std::to_string(error.context().peer);
    }
    return "nothing";
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(said[static_cast<std::size_t>(rank)], "peer_lost 1") << "rank " << rank;
  }
}

TEST(Kill, WhileBucketsAreUnderWay) {
  expect_told([](Communicator& comm) {
    GradientBuckets buckets(comm, {.first_bytes = 1 << 16, .bytes = 1 << 18});
    for (int i = 0; i < 8; ++i) {
      buckets.add("layer " + std::to_string(i), std::size_t{1} << 16);
    }
    for (int step = 0; step < 20; ++step) {
      buckets.begin();
      for (std::size_t i = 0; i < 8; ++i) {
        if (comm.rank() == kVictim && step == 2 && i == 5) {
          ::raise(SIGKILL);
        }
        buckets.ready(i);
      }
      buckets.finish();
    }
  });
}

TEST(Kill, WhileParametersAreGathered) {
  expect_told([](Communicator& comm) {
    ShardedState state(comm, {{{.name = "w", .count = 1 << 20}}, {{.name = "v", .count = 1 << 20}}},
                       {.stage = 3});
    for (int step = 0; step < 20; ++step) {
      state.prefetch(0);
      state.prefetch(1);
      if (comm.rank() == kVictim && step == 1) {
        ::raise(SIGKILL);
      }
      for (const std::size_t unit : {0U, 1U}) {
        state.parameters(unit);
        state.release(unit);
        state.gradients_ready(unit);
      }
      state.step();
    }
  });
}

constexpr std::size_t kRows = 60;
constexpr std::size_t kColumns = 5000;

// Saves a tensor whose elements are all `value`. Each rank has some of its columns, so that every
// rank writes over the whole length of its file.
void save_one(Communicator& comm, const std::string& folder, float value) {
  const Range mine = shard_range(kColumns, comm.size(), comm.rank());
  std::vector<float> part(kRows * mine.count, value);
  const Saved saved{.name = "w",
                    .shape = {kRows, kColumns},
                    .part = Tensor::of(part, {kRows, mine.count}),
                    .first = {0, mine.first}};
  save_checkpoint(comm, folder, {&saved, 1});
}

// Returns the value of all elements; throws if the checkpoint cannot be read.
float loaded_value(const std::string& folder) {
  std::vector<float> whole(kRows * kColumns, -1);
  const Saved wanted{
      .name = "w", .shape = {kRows, kColumns}, .part = Tensor::of(whole, {kRows, kColumns})};
  load_checkpoint(folder, {&wanted, 1});
  EXPECT_EQ(whole, std::vector<float>(whole.size(), whole[0]));
  return whole[0];
}

class KillWhileSaving : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Rank, KillWhileSaving, ::testing::Values(0, kVictim));

TEST_P(KillWhileSaving, LeavesACheckpointWhole) {
  const std::string folder =
      ::testing::TempDir() + "/" + comm::testing::unique_name("parallel-kill-save");
  // The times of death spread over a save and the time after it.
  for (int i = 0; i < 24; ++i) {
    const int delay_us = 100 * i * i;
    const std::string job = comm::testing::unique_name("parallel-kill-save");
    const auto said = comm::testing::as_processes(kRanks, [&](int rank) -> std::string {
      ConnectOptions options = comm::testing::options_for(rank, kRanks, job);
      options.timeout_ms = 60'000;
      Communicator comm = Communicator::connect(options);
      int saves = 0;
      try {
        save_one(comm, folder, 0);
        std::thread killer;
        if (rank == GetParam()) {
          killer = std::thread([&] {
            std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
            ::kill(::getpid(), SIGKILL);
          });
          killer.detach();
        }
        for (;; ++saves) {
          save_one(comm, folder, static_cast<float>(saves + 1));
        }
      } catch (const Error& error) {
        return std::to_string(saves) + " " + std::string(to_string(error.code()));
      }
    });
    const float value = loaded_value(folder);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (rank != GetParam()) {
        const std::string& text = said[static_cast<std::size_t>(rank)];
        EXPECT_NE(text.find("peer_lost"), std::string::npos) << text;
        // A save that a rank has seen complete exists; the next save may exist too.
        const auto seen = std::stof(text);
        EXPECT_TRUE(value == seen || value == seen + 1) << value << " after " << seen;
      }
    }
  }
  // The remains of unfinished saves do not hinder the next one.
  run_threads(2, [&](Communicator& comm) { save_one(comm, folder, 7); });
  EXPECT_EQ(loaded_value(folder), 7);
  EXPECT_FALSE(std::filesystem::exists(folder + ".saving"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace unisono::parallel
