// ConnectOptions::interrupted: a rank that waits is asked whether to go on, while it meets the
// others and in an operation.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/rendezvous_testing.h"
#include "unisono/communicator.hpp"

namespace unisono::comm {
namespace {

TEST(Interrupt, EndsAWaitOnAllRanks) {
  std::vector<std::string> said(2);
  const std::string job = "interrupt-" + std::to_string(::getpid());
  std::atomic<bool> connected = false;
  const auto body = [&](int rank) {
    ConnectOptions options;
    options.rank = rank;
    options.size = 2;
    options.job = job;
    options.interrupted = [&, rank] { return rank == 0 && connected; };
    Communicator world = Communicator::connect(options);
    connected = true;
    const auto begin = std::chrono::steady_clock::now();
    try {
      // Rank 1 computes for so long that rank 0 is asked.
      std::this_thread::sleep_for(std::chrono::milliseconds(rank * 2000));
      world.barrier();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::aborted);
      said[static_cast<std::size_t>(rank)] = error.what();
    }
    EXPECT_TRUE(rank == 1 || std::chrono::steady_clock::now() - begin < std::chrono::seconds(2));
  };
  std::thread other(body, 1);
  body(0);
  other.join();
  for (const std::string& text : said) {
    EXPECT_NE(text.find("rank 0 was interrupted"), std::string::npos) << text;
  }
}

enum class Way { name, file, network };

class InterruptedMeeting : public ::testing::TestWithParam<Way> {
 protected:
  ConnectOptions options(int rank, std::function<bool()> interrupted) const {
    ConnectOptions options;
    options.rank = rank;
    options.size = 2;
    options.job = job_;
    options.interrupted = std::move(interrupted);
    if (GetParam() == Way::file) {
      options.file = ::testing::TempDir() + job_;
    }
    if (GetParam() == Way::network) {
      options.address = testing::loopback_address(job_);
      options.token = "0123456789abcdef";
      options.transport = "tcp";
    }
    return options;
  }

  // What connect() says.
  std::string said_by(int rank, std::function<bool()> interrupted) const {
    try {
      Communicator::connect(options(rank, std::move(interrupted)));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::aborted) << error.what();
      return error.what();
    }
    return "nothing";
  }

  std::string job_ = "interrupted-meeting-" + std::to_string(::getpid()) + "-" +
                     std::to_string(static_cast<int>(GetParam()));
};

TEST_P(InterruptedMeeting, EndsAndLeavesNothingBehind) {
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_NE(said_by(rank, [] { return true; }).find("was interrupted"), std::string::npos);
  }
  // Its name and its place are free.
  std::thread other([&] { EXPECT_EQ(said_by(1, nullptr), "nothing"); });
  EXPECT_EQ(said_by(0, nullptr), "nothing");
  other.join();
}

TEST_P(InterruptedMeeting, OfRankZeroIsToldToThoseThatHaveCome) {
  if (GetParam() == Way::network) {
    GTEST_SKIP() << "both are there at once";
  }
  ConnectOptions three = options(0, nullptr);
  three.size = 3;
  ConnectOptions second = three;
  second.rank = 1;
  std::atomic<bool> is_waiting = false;
  second.interrupted = [&] {
    is_waiting = true;
    return false;
  };
  std::string said;
  std::thread other([&] {
    try {
      Communicator::connect(second);
    } catch (const Error& error) {
      said = error.what();
    }
  });
  three.interrupted = [&] { return is_waiting.load(); };
  EXPECT_THROW(Communicator::connect(three), Error);
  other.join();
  EXPECT_NE(said.find("rank 0 was interrupted"), std::string::npos) << said;
}

TEST_P(InterruptedMeeting, IsNotBegunWithAFlagThatCannotBe) {
  ::setenv("UNISONO_QUIET", "x", 1);
  try {
    Communicator::connect(options(1, [] { return true; }));
    ADD_FAILURE() << "UNISONO_QUIET=x passes";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config) << error.what();
  }
  ::unsetenv("UNISONO_QUIET");
}

INSTANTIATE_TEST_SUITE_P(ByNameByFileAndOverTheNetwork, InterruptedMeeting,
                         ::testing::Values(Way::name, Way::file, Way::network));

}  // namespace
}  // namespace unisono::comm
