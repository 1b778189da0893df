// Promises of Communicator that hold for every kind of call.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "comm/testing_ranks.h"
#include "unisono/statistics.hpp"

namespace unisono::comm {
namespace {

// Returns the usage error of `call`.
Error refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
    return error;
  }
  ADD_FAILURE() << "a wrong call is not refused";
  return {ErrorCode::internal, ""};
}

TEST(UsageErrors, NameWorldRanksInASplitGroup) {
  testing::run_ranks(4, [](Communicator& world) {
    Communicator pair = world.split(world.rank() / 2, 0);
    if (world.rank() == 3) {
      float value = 0;
      const Error root = refused([&] {
        pair.run({.collective = Collective::broadcast, .out = &value, .count = 1, .root = 2});
      });
      EXPECT_EQ(root.summary(), "broadcast on rank 3 (1 of its group): root 2 is not a rank");
      EXPECT_EQ(root.context().rank, 3);
      const Error buffer = refused([&] {
        pair.run({.collective = Collective::broadcast, .out = nullptr, .count = 1, .root = 0});
      });
      EXPECT_EQ(buffer.context().rank, 3) << buffer.what();
      const Error null = refused([&] { pair.send(nullptr, 4, 0); });
      EXPECT_EQ(null.context().rank, 3);
      EXPECT_EQ(null.context().peer, 2) << "rank 0 of the pair";
      const Error nobody = refused([&] { pair.send(&value, 4, 2); });
      EXPECT_EQ(nobody.context().peer, -1) << "rank 2 of the world is a rank";
    }
    world.barrier();
  });
}

TEST(CallStatistics, CountAsynchronousSendsAndReceives) {
  testing::run_ranks(2, [](Communicator& comm) {
    float value = 1;
    if (comm.rank() == 0) {
      comm.send(&value, sizeof(value), 1);
      comm.send_async(&value, sizeof(value), 1).wait();
    } else {
      comm.recv(&value, sizeof(value), 0);
      comm.recv_async(&value, sizeof(value), 0).wait();
    }
    comm.barrier();
    const Statistics statistics = comm.statistics();
    const char* const what = comm.rank() == 0 ? "send" : "recv";
    const auto row = std::find_if(statistics.rows.begin(), statistics.rows.end(),
                                  [&](const Statistics::Row& one) { return one.what == what; });
    ASSERT_NE(row, statistics.rows.end());
    EXPECT_EQ(row->calls, 2U);
    EXPECT_EQ(row->bytes, 2 * sizeof(value));
  });
}

}  // namespace
}  // namespace unisono::comm
