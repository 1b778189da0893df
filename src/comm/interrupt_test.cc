// ConnectOptions::interrupted: a rank that waits is asked whether to go on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "unisono/communicator.hpp"

namespace unisono::comm {
namespace {

TEST(Interrupt, EndsAWaitOnAllRanks) {
  std::vector<std::string> said(2);
  const std::string job = "interrupt-" + std::to_string(::getpid());
  const auto body = [&](int rank) {
    ConnectOptions options;
    options.rank = rank;
    options.size = 2;
    options.job = job;
    options.interrupted = [rank] { return rank == 0; };
    Communicator world = Communicator::connect(options);
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

}  // namespace
}  // namespace unisono::comm
