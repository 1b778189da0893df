#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "comm/testing_ranks.h"

namespace unisono::comm {
namespace {

constexpr int kRanks = 4;

TEST(LateRanks, AreThoseThatHaveNotEnteredTheCollective) {
  testing::run_ranks(kRanks, [](Communicator& comm) {
    EXPECT_TRUE(comm.late_ranks().empty());
    Communicator reversed = comm.split(0, -comm.rank());
    reversed.barrier();
    if (comm.rank() < 2) {
      while (!comm.failure()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return;
    }
    try {
      reversed.run({.collective = Collective::barrier, .timeout_ms = 200});
      ADD_FAILURE() << "a barrier to which two ranks did not come";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout) << error.what();
    }
    const std::vector<int> late = reversed.late_ranks();
    // The numbers are group ranks. The other waiting rank is on another host; depending on which
    // rank gives up first, it may not have reported its position.
    EXPECT_EQ(std::count(late.begin(), late.end(), 2), 1);
    EXPECT_EQ(std::count(late.begin(), late.end(), 3), 1);
    EXPECT_EQ(std::count(late.begin(), late.end(), reversed.rank()), 0);
    if (comm.hosts() == 1) {
      EXPECT_EQ(late, (std::vector<int>{2, 3}));
      EXPECT_TRUE(comm.late_ranks().empty()) << "no collective of this group is under way";
    }
  });
}

TEST(LateRanks, OneRankAloneIsNeverLate) {
  testing::run_ranks(1, [](Communicator& comm) {
    comm.barrier();
    EXPECT_TRUE(comm.late_ranks().empty());
  });
}

}  // namespace
}  // namespace unisono::comm
