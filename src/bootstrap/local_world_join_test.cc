// Failed and disturbed meetings: every reachable rank gets the same reason.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <thread>

#include "bootstrap/auth.h"
#include "bootstrap/testing.h"

namespace unisono::comm {
namespace {

using testing::as_threads;
using testing::join;
using testing::kToken;
using testing::options_for;
using testing::unique_name;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool matches(const std::string& text, const std::string& pattern) {
  return std::regex_match(text, std::regex(pattern));
}

TEST(Join, MissingRanksAreNamedOnAll) {
  const std::string job = unique_name("missing");
  const auto results = as_threads(8, [&](int rank) {
    return rank == 3 || rank == 5 ? "" : join(options_for(rank, 8, job, 3000));
  });
  for (const int rank : {0, 1, 2, 4, 6, 7}) {
    const std::string& text = results[static_cast<std::size_t>(rank)];
    EXPECT_TRUE(matches(text, "connection: joined 6 of 8; missing ranks 3, 5 after [0-9.]+ s\n.*"))
        << rank << ": " << text;
  }
}

// Sleeps longer than anybody waits without a message. Sleeps in short naps, so that time in which
// the whole test was stopped does not count.
void come_late() {
  for (int nap = 0; nap < 35; ++nap) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

TEST(Join, WhoWaitsLongMayBeToldToBeQuiet) {
  const std::string job = unique_name("quiet");
  ::setenv("UNISONO_QUIET", "1", 1);
  ::testing::internal::CaptureStderr();
  as_threads(2, [&](int rank) {
    if (rank == 1) {
      come_late();
    }
    return join(options_for(rank, 2, job, 60'000));
  });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::unsetenv("UNISONO_QUIET");
}

// The message appears once on stderr, long before the time limit.
TEST(Join, WhoWaitsLongSaysForWhom) {
  for (const int late : {0, 2}) {
    const std::string job = unique_name("silent");
    ::testing::internal::CaptureStderr();
    as_threads(3, [&](int rank) {
      if (rank == late) {
        come_late();
      }
      return join(options_for(rank, 3, job, 60'000));
    });
    const std::string said = ::testing::internal::GetCapturedStderr();
    if (late == 0) {
      EXPECT_NE(said.find("unisono: rank 1 of 3 is still waiting for rank 0\n"), std::string::npos)
          << said;
      EXPECT_NE(said.find("unisono: rank 2 of 3 is still waiting for rank 0\n"), std::string::npos)
          << said;
    } else {
      EXPECT_EQ(said, "unisono: joined 2 of 3, still waiting for rank 2\n");
    }
  }
}

TEST(Join, TheLeastPatientRankSetsTheTimeForAll) {
  const std::string job = unique_name("patience");
  const auto start = Clock::now();
  const auto results = as_threads(3, [&](int rank) {
    return rank == 2 ? "" : join(options_for(rank, 3, job, rank == 0 ? 60'000 : 1000));
  });
  EXPECT_LT(seconds_since(start), 30.0);
  EXPECT_NE(results[0].find("joined 2 of 3; missing rank 2 after"), std::string::npos)
      << results[0];
  EXPECT_EQ(results[1], results[0]);
}

// Returns once a rank has called rank 0 of `job`; the kernel lists the listener and the call.
void await_call(const std::string& job) {
  for (int sockets = 0; sockets < 2;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::ifstream table("/proc/net/unix");
    sockets = 0;
    for (std::string line; std::getline(table, line);) {
      sockets += line.ends_with(" @" + address_of(job)) ? 1 : 0;
    }
  }
}

// The others end long before the time limit: with and without a token, and whether rank 0 has
// admitted them or they have just called.
TEST(Join, RankZeroThatDiesEndsTheOthersAtOnce) {
  for (const char* token : {"", kToken}) {
    const std::string job = unique_name("beheaded");
    const auto body = [&](int rank) {
      ConnectOptions options = options_for(rank, 3, job, 60'000);
      options.token = token;
      return join(options);
    };
    const auto start = Clock::now();
    testing::Child root(body, 0);
    testing::Child other(body, 1);
    await_call(job);
    ::kill(root.pid(), SIGKILL);
    EXPECT_EQ(other.result(), "connection: rank 0 is gone before all 3 ranks were there: process " +
                                  std::to_string(root.pid()) +
                                  " killed by SIGKILL\nlook at its last output");
    EXPECT_LT(seconds_since(start), 30.0);
    root.result();
  }
}

TEST(Join, WithoutRankZeroTheOthersSaySo) {
  const std::string job = unique_name("headless");
  const auto results = as_threads(
      3, [&](int rank) { return rank == 0 ? "" : join(options_for(rank, 3, job, 100)); });
  EXPECT_TRUE(
      matches(results[2], "connection: rank 2 of 3 found no rank 0 of its job after [0-9.]+ s\n.*"))
      << results[2];
}

TEST(Join, RankGivenTwice) {
  const std::string job = unique_name("twice");
  const auto results =
      as_threads(4, [&](int rank) { return join(options_for(rank == 3 ? 1 : rank, 4, job)); });
  const std::string pid = std::to_string(::getpid());
  for (const std::string& text : results) {
    EXPECT_EQ(text.rfind("config: rank 1 was given twice: to process " + pid + " and to process " +
                             pid + "\n",
                         0),
              0U)
        << text;
  }
}

TEST(Join, RankZeroGivenTwice) {
  const std::string job = unique_name("zeros");
  const auto results = as_threads(2, [&](int) { return join(options_for(0, 2, job)); });
  for (const std::string& text : results) {
    EXPECT_EQ(text.rfind("config: rank 0 was given twice", 0), 0U) << text;
  }
}

TEST(Join, SizesDiffer) {
  const std::string job = unique_name("sizes");
  const auto results =
      as_threads(3, [&](int rank) { return join(options_for(rank, rank == 2 ? 4 : 3, job)); });
  for (const std::string& text : results) {
    EXPECT_NE(text.find(") expects a job of 4 ranks, rank 0 (process "), std::string::npos) << text;
    EXPECT_EQ(text.rfind("config: rank 2 (process ", 0), 0U) << text;
  }
}

TEST(Join, ImpossibleNumbersAreRefused) {
  for (const auto& [rank, size] : {std::pair(-1, 2), {2, 2}, {0, 0}, {0, -1}, {0, 5000}}) {
    const auto text = testing::run_one(
        [&, r = rank, s = size](int) { return join(options_for(r, s, unique_name("bad"), 100)); },
        0);
    EXPECT_EQ(text.rfind("config: rank ", 0), 0U) << text;
  }
}

TEST(Join, AllGatherNamesTheRankThatDoesNotCome) {
  const std::string job = unique_name("absent");
  const testing::SharedEvent gave_up;
  const auto results = as_threads(3, [&](int rank) {
    const auto world = LocalWorld::join(options_for(rank, 3, job, 3000));
    if (rank == 1) {
      return std::string(gave_up.wait(2) ? "" : "the others wait");
    }
    const std::string said = testing::run_one(
        [&](int) {
          world->all_gather({});
          return std::string("gathered");
        },
        rank);
    gave_up.happen();
    return said;
  });
  EXPECT_EQ(results[0].rfind("timeout: rank 1 did not take part in the set-up within 3000 ms", 0),
            0U)
      << results[0];
  EXPECT_EQ(results[2].rfind("timeout: rank", 0), 0U) << results[2];
}

TEST(Join, AllGatherNamesTheRankThatLeft) {
  const std::string job = unique_name("gone");
  const auto results = as_threads(3, [&](int rank) {
    const auto world = LocalWorld::join(options_for(rank, 3, job));
    if (rank == 1) {
      return std::string();
    }
    world->all_gather({});
    return std::string("gathered");
  });
  for (const int rank : {0, 2}) {
    const std::string& text = results[static_cast<std::size_t>(rank)];
    EXPECT_EQ(text.rfind("peer_lost: rank 1 closed its connection during the set-up", 0), 0U)
        << text;
  }
}

}  // namespace
}  // namespace unisono::comm
