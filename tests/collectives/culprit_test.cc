// The rank that a timeout names: the rank that delays all others, not one that waits itself.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "ranks.h"

namespace unisono::testing {
namespace {

// Rank 2 never arrives. Rank 0 waits for it in #1; ranks 1 and 3, which have sent, wait for rank 0
// in #2.
TEST(Culprit, IsNotOneThatWaitsInAnEarlierOperation) {
  const auto said = on_ranks(Ranks::processes, 4, [](Communicator& comm) -> std::string {
    std::vector<int> data(4);
    Call call{.collective = Collective::reduce,
              .in = data.data(),
              .out = data.data(),
              .count = data.size(),
              .dtype = Dtype::i32,
              .timeout_ms = 60'000};
    try {
      if (comm.rank() == 2) {
        std::this_thread::sleep_for(std::chrono::seconds(6));
      }
      comm.run(call);
      call.collective = Collective::all_reduce;
      call.algorithm = "ring";
      call.timeout_ms = 1000;
      comm.run(call);
      return "no error";
    } catch (const Error& error) {
      const bool right = error.code() == ErrorCode::timeout && error.context().peer == 2;
      return right ? "" : std::to_string(error.context().peer) + ": " + error.what();
    }
  });
  for (const std::string& one : said) {
    EXPECT_EQ(one, "");
  }
}

}  // namespace
}  // namespace unisono::testing
