// Ranks die, and the others continue without them; new ranks replace them.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/env.h"
#include "bootstrap/testing.h"
#include "job.h"
#include "membership/quorum.h"

namespace unisono::testing {
namespace {

constexpr int kRanks = 4;

// Returns the host of a rank in this test: see place() in bootstrap/testing.h.
int host_of(int rank) {
  const std::string world = read_env("UNISONO_TEST_WORLD").value_or("");
  return world.empty() ? 0 : world == "tcp" ? rank : rank / 2;
}

// Returns true if the live ranks may continue. A death is proved by live ranks on the same host.
bool may_go_on(const std::vector<int>& dead) {
  std::vector<comm::RankStatus> standing(kRanks, comm::RankStatus::present);
  const auto is_dead = [&](int rank) {
    return std::find(dead.begin(), dead.end(), rank) != dead.end();
  };
  for (const int rank : dead) {
    bool proved = false;
    for (int other = 0; other < kRanks; ++other) {
      proved |= !is_dead(other) && host_of(other) == host_of(rank);
    }
    standing[static_cast<std::size_t>(rank)] =
        proved ? comm::RankStatus::gone : comm::RankStatus::absent;
  }
  return comm::has_quorum(standing);
}

std::string text_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    text += std::to_string(rank) + " ";
  }
  return text;
}

void communicate_until_error(Communicator& comm) {
  std::vector<float> data(std::size_t{64} << 10, 1);
  for (;;) {
    comm.all_reduce(data, max);
  }
}

// Checks that `comm` works: every rank adds its number in the first world.
void check(Communicator& comm, const std::vector<int>& ranks) {
  std::vector<int> data(1000, ranks[static_cast<std::size_t>(comm.rank())]);
  comm.all_reduce(data, sum);
  if (data != std::vector<int>(1000, std::accumulate(ranks.begin(), ranks.end(), 0))) {
    throw Error(ErrorCode::corrupt, "a wrong sum after shrink()");
  }
  std::vector<int> all(ranks.size());
  const int mine = ranks[static_cast<std::size_t>(comm.rank())];
  comm.split(0, comm.rank()).all_gather(std::span(&mine, 1), all);
  if (all != ranks) {
    throw Error(ErrorCode::corrupt, "a wrong all_gather in a group after shrink()");
  }
}

// Only one rank of the world calls.
void expect_refused(Communicator& old) {
  try {
    static_cast<void>(old.shrink());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::usage) {
      return;
    }
  }
  throw Error(ErrorCode::corrupt, "a second shrink() was not refused");
}

// Continues without the ranks that die, and reports the remaining ranks as an error: "went on: 0 1
// 3 ".
void go_on_for_ever(Communicator& comm, const ShrinkOptions& options) {
  std::vector<int> ranks(kRanks);
  std::iota(ranks.begin(), ranks.end(), 0);
  try {
    communicate_until_error(comm);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::peer_lost && error.code() != ErrorCode::timeout &&
        error.code() != ErrorCode::aborted) {
      throw;
    }
  }
  for (;;) {
    try {
      Communicator old = std::move(comm);
      comm = old.shrink(options);
      expect_refused(old);
      std::vector<int> left;
      for (const int rank : comm.previous_ranks()) {
        left.push_back(ranks[static_cast<std::size_t>(rank)]);
      }
      ranks = left;
      check(comm, ranks);
      ::usleep(20'000);  // for ranks that are killed slightly later
      comm.barrier();
      break;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost) {
        throw;
      }
    }
  }
  throw Error(ErrorCode::internal, "went on: " + text_of(ranks));
}

void expect_the_same(Job& job, const std::vector<int>& dead) {
  std::vector<int> left;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (std::find(dead.begin(), dead.end(), rank) == dead.end()) {
      left.push_back(rank);
    }
  }
  for (const int rank : left) {
    const auto report = job.ending(rank);
    ASSERT_TRUE(report.has_value()) << "rank " << rank << " hangs or died";
    if (may_go_on(dead)) {
      EXPECT_EQ(report->text, "internal: went on: " + text_of(left));
    } else {
      EXPECT_EQ(report->code, ErrorCode::evicted) << report->text;
    }
  }
}

TEST(Shrink, TheOthersGoOnWithoutAnyRank) {
  std::mt19937 random(std::random_device{}());
  for (int trial = 0; trial < 8 && !HasFailure(); ++trial) {
    const int victim = trial % kRanks;
    Job job(kRanks, [](Communicator& comm) { go_on_for_ever(comm, {}); });
    ASSERT_TRUE(job.wait_ready());
    ::usleep(static_cast<unsigned>(random() % 3000));
    job.signal(victim, SIGKILL);
    SCOPED_TRACE(victim);
    expect_the_same(job, {victim});
  }
}

TEST(Shrink, InAFewPorts) {
  ::setenv("UNISONO_PORTS", "23100-23119", 1);
  Job job(kRanks, [](Communicator& comm) { go_on_for_ever(comm, {}); });
  ASSERT_TRUE(job.wait_ready());
  job.signal(1, SIGKILL);
  expect_the_same(job, {1});
  ::unsetenv("UNISONO_PORTS");
}

TEST(Shrink, ManyDieAtOnceOrOneAfterTheOther) {
  std::mt19937 random(std::random_device{}());
  for (int trial = 0; trial < 8 && !HasFailure(); ++trial) {
    std::vector<int> victims = {0, 1, 2, 3};
    std::shuffle(victims.begin(), victims.end(), random);
    victims.resize(2 + random() % 2);
    const unsigned between_us = trial % 2 == 0 ? 0 : static_cast<unsigned>(random() % 8000);
    Job job(kRanks, [](Communicator& comm) { go_on_for_ever(comm, {.timeout_ms = 10'000}); });
    ASSERT_TRUE(job.wait_ready());
    for (const int victim : victims) {
      job.signal(victim, SIGKILL);
      ::usleep(between_us);
    }
    SCOPED_TRACE("victims " + text_of(victims) + "every " + std::to_string(between_us) + " us");
    if (between_us == 0) {
      expect_the_same(job, victims);
      continue;
    }
    // They may have continued with ranks that died later, and without a quorum afterwards, but all
    // living ranks must report the same.
    std::string first;
    for (int rank = 0; rank < kRanks; ++rank) {
      if (std::find(victims.begin(), victims.end(), rank) != victims.end()) {
        continue;
      }
      const auto report = job.ending(rank);
      ASSERT_TRUE(report.has_value()) << "rank " << rank << " hangs or died";
      const std::string text = report->code == ErrorCode::evicted ? "evicted" : report->text;
      EXPECT_TRUE(first.empty() || first == text) << first << " but " << text;
      first = text;
    }
  }
}

// With several hosts, the other ranks cannot be proved dead.
TEST(Shrink, OneAloneGoesOnWhereNoQuorumIsAskedFor) {
  Job job(kRanks,
          [](Communicator& comm) { go_on_for_ever(comm, {.timeout_ms = 0, .quorum = false}); });
  ASSERT_TRUE(job.wait_ready());
  for (const int victim : {0, 1, 2}) {
    job.signal(victim, SIGKILL);
  }
  const auto report = job.ending(3);
  ASSERT_TRUE(report.has_value()) << "it hangs or died";
  EXPECT_STREQ(report->text, "internal: went on: 3 ");
}

// A rank that leaves is not a failure; the others continue without it. Here all ranks are threads
// of this process.
TEST(Shrink, WithoutARankThatHasLeft) {
  const std::string job = comm::testing::unique_name("left");
  const auto said = comm::testing::as_threads(kRanks, [&](int rank) -> std::string {
    auto comm = Communicator::connect(comm::testing::options_for(rank, kRanks, job));
    if (rank == 1) {
      return "";
    }
    comm = comm.shrink();
    const std::vector<int> left = comm.previous_ranks();
    check(comm, left);
    return text_of(left);
  });
  EXPECT_EQ(said, (std::vector<std::string>{"0 2 3 ", "", "0 2 3 ", "0 2 3 "}));
}

TEST(Shrink, WhoSleepsTooLongIsEvicted) {
  Job job(kRanks, [](Communicator& comm) { go_on_for_ever(comm, {.timeout_ms = 4000}); }, 1000);
  ASSERT_TRUE(job.wait_ready());
  ::usleep(1000);
  job.signal(2, SIGSTOP);
  for (const int rank : {0, 1, 3}) {
    const auto report = job.ending(rank);
    ASSERT_TRUE(report.has_value()) << "rank " << rank << " hangs or died";
    EXPECT_STREQ(report->text, "internal: went on: 0 1 3 ");
  }
  job.signal(2, SIGCONT);
  const auto report = job.ending(2);
  ASSERT_TRUE(report.has_value()) << "who was evicted hangs or died";
  EXPECT_EQ(report->code, ErrorCode::evicted) << report->text;
}

int open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<int>(std::distance(begin(files), end(files)));
}

constexpr int kCycles = 12;

std::vector<int> all_ranks() {
  std::vector<int> ranks(kRanks);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Sums until a rank dies, continues without it, and then with a new rank in its place.
void heal(Communicator& comm, std::atomic<int>& whole) {
  int files = 0;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    try {
      communicate_until_error(comm);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::peer_lost && error.code() != ErrorCode::aborted) {
        throw;
      }
    }
    comm = comm.shrink();
    comm = comm.grow(kRanks);
    check(comm, all_ranks());
    ++whole;
    if (cycle == 0) {
      files = open_files();
    }
  }
  if (open_files() != files) {
    throw Error(ErrorCode::internal,
                "open files: " + std::to_string(files) + ", then " + std::to_string(open_files()));
  }
}

// A killed rank is replaced again and again: each time by the last rank of the new world.
TEST(Shrink, ANewRankTakesTheLastPlace) {
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto& whole = *new (page) std::atomic<int>(0);  // ranks of worlds that were completed again
  Job job(kRanks, [&](Communicator& comm) { heal(comm, whole); });
  ASSERT_TRUE(job.wait_ready());
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    ::usleep(5000);
    job.signal(kRanks - 1, SIGKILL);
    job.replace(kRanks - 1, [&](Communicator& comm) {
      check(comm, all_ranks());
      ++whole;
      if (cycle + 1 < kCycles) {
        communicate_until_error(comm);
      }
    });
    ASSERT_EQ(job.await_ready(kRanks - 1), "ready") << "cycle " << cycle;
    for (int ms = 0; ms < 60'000 && whole != kRanks * (cycle + 1); ++ms) {
      ::usleep(1000);
    }
    ASSERT_EQ(whole, kRanks * (cycle + 1));
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto report = job.ending(rank);
    ASSERT_TRUE(report.has_value()) << "rank " << rank << " hangs or died";
    EXPECT_EQ(report->kind, Report::Kind::ended) << report->text;
  }
  ::munmap(page, 4096);
}

TEST(Shrink, SaysWhatCannotBe) {
  Job job(2, [](Communicator& comm) {
    std::string told;
    for (const bool shrinks : {true, false}) {
      try {
        Communicator part = comm.split(0, 0);
        shrinks ? part.shrink() : part.grow(8);
      } catch (const Error& error) {
        told += error.what();
      }
    }
    try {
      Communicator less = comm.grow(1);
    } catch (const Error& error) {
      told += error.what();
    }
    const bool right =
        told.find("usage: shrink() on a part of the world") == 0 &&
        told.find("usage: grow() on a part of the world") != std::string::npos &&
        told.find("usage: grow(1): the world has 2 ranks already") != std::string::npos;
    comm.barrier();
    if (!right) {
      throw Error(ErrorCode::internal, told);
    }
  });
  for (const int rank : {0, 1}) {
    const auto report = job.ending(rank);
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->kind, Report::Kind::ended) << report->text;
  }
}

}  // namespace
}  // namespace unisono::testing
