// Compares the accounts with the ranks' actual calls. No test here sets an upper limit for a time,
// because everything takes longer on a busy machine.
#include "comm/accounts.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "unisono/unisono.hpp"

namespace unisono {
namespace {

// Delay of the late rank; long enough that all other ranks are in the call by then, even on a slow
// machine.
constexpr int kLateMs = 120;
constexpr int kLeastMs = 15;

const Statistics::Row* find(const Statistics& statistics, const std::string& what) {
  for (const Statistics::Row& row : statistics.rows) {
    if (row.what == what) {
      return &row;
    }
  }
  return nullptr;
}

void be_late() {
  std::this_thread::sleep_for(std::chrono::milliseconds(kLateMs));
}

void expect_waited_for(const Statistics::Row& row, int late) {
  EXPECT_GE(row.waiting_for_s.at(static_cast<std::size_t>(late)), kLeastMs * 1e-3);
  for (std::size_t rank = 0; rank < row.waiting_for_s.size(); ++rank) {
    EXPECT_LE(row.waiting_for_s[rank], row.waiting_s * 1.000001);
  }
  std::uint64_t calls = 0;
  for (const std::uint64_t count : row.skew) {
    calls += count;
  }
  EXPECT_EQ(calls, row.calls);
  EXPECT_LT(row.skew[0], row.calls);
}

TEST(Accounts, NothingWasCalled) {
  run_threads(1, [](Communicator& comm) {
    EXPECT_TRUE(comm.statistics().rows.empty());
    EXPECT_NE(comm.statistics().text(), "");
  });
}

TEST(Accounts, OneRankWaitsForNobody) {
  run_threads(1, [](Communicator& comm) {
    std::vector<float> data(7);
    comm.all_reduce(data, sum);
    const Statistics statistics = comm.statistics();
    const Statistics::Row* const row = find(statistics, "all_reduce");
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->calls, 1U);
    EXPECT_EQ(row->bytes, 7 * sizeof(float));
    EXPECT_EQ(row->waiting_s, 0);
    EXPECT_EQ(row->skew[0], 1U);
  });
}

TEST(Accounts, CountsCallsAndBytes) {
  run_threads(3, [](Communicator& comm) {
    std::vector<double> data(10);
    std::vector<double> all(30);
    for (int i = 0; i < 100; ++i) {
      comm.all_reduce(data, sum);
    }
    comm.all_gather(data, all);
    comm.barrier();
    comm.all_reduce_async(data, sum).wait();
    const Statistics statistics = comm.statistics();
    ASSERT_EQ(statistics.rows.size(), 3U);
    EXPECT_EQ(find(statistics, "all_reduce")->calls, 101U);
    EXPECT_EQ(find(statistics, "all_reduce")->bytes, 101 * 10 * sizeof(double));
    EXPECT_EQ(find(statistics, "all_gather")->bytes, 30 * sizeof(double));
    EXPECT_EQ(find(statistics, "barrier")->calls, 1U);
    EXPECT_NE(statistics.text().find("all_gather"), std::string::npos);
  });
}

TEST(Accounts, NamesTheLateRank) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{200'000}}) {
    run_threads(3, [count](Communicator& comm) {
      std::vector<float> data(count);
      comm.barrier();
      for (int i = 0; i < 3; ++i) {
        if (comm.rank() == 1) {
          be_late();
        }
        comm.all_reduce(data, sum);
      }
      if (comm.rank() != 1) {
        const Statistics statistics = comm.statistics();
        const Statistics::Row& row = *find(statistics, "all_reduce");
        expect_waited_for(row, 1);
        EXPECT_GT(row.waiting_for_s[1], row.waiting_s / 2);
        EXPECT_NE(statistics.text().find("rank 1"), std::string::npos);
      }
    });
  }
}

TEST(Accounts, RanksAreThoseOfTheGroup) {
  run_threads(4, [](Communicator& comm) {
    Communicator half = comm.split(comm.rank() % 2, -comm.rank());
    float value = 1;
    half.barrier();
    if (half.rank() == 0) {
      be_late();
    }
    half.all_reduce(std::span(&value, 1), sum);
    if (half.rank() == 1) {
      const Statistics statistics = half.statistics();
      const Statistics::Row& row = *find(statistics, "all_reduce");
      ASSERT_EQ(row.waiting_for_s.size(), 2U);
      expect_waited_for(row, 0);
    }
    EXPECT_EQ(find(comm.statistics(), "all_reduce"), nullptr);
  });
}

TEST(Accounts, WaitsOfRequestsCount) {
  run_threads(2, [](Communicator& comm) {
    std::vector<float> data(5);
    comm.barrier();
    if (comm.rank() == 0) {
      be_late();
    }
    comm.all_reduce_async(data, sum).wait();
    if (comm.rank() == 1) {
      const Statistics statistics = comm.statistics();
      expect_waited_for(*find(statistics, "all_reduce"), 0);
    }
  });
}

TEST(Accounts, SendsAndReceives) {
  run_threads(3, [](Communicator& comm) {
    std::int32_t value = 0;
    if (comm.rank() == 2) {
      comm.recv(&value, sizeof(value), 0);
      const Statistics statistics = comm.statistics();
      const Statistics::Row& row = *find(statistics, "recv");
      EXPECT_EQ(row.bytes, sizeof(value));
      expect_waited_for(row, 0);
    } else if (comm.rank() == 0) {
      be_late();
      comm.send(&value, sizeof(value), 2);
      const Statistics statistics = comm.statistics();
      EXPECT_EQ(find(statistics, "send")->calls, 1U);
      EXPECT_EQ(find(statistics, "recv"), nullptr);
    }
  });
}

TEST(Accounts, ReceivesCountTheirMessages) {
  run_threads(2, [](Communicator& comm) {
    std::array<std::byte, 64> room = {};
    if (comm.rank() == 0) {
      comm.send(room.data(), 5, 1);
      comm.send_recv(room.data(), 3, 1, room.data(), room.size(), 1);
      comm.send_async(room.data(), 9, 1).wait();
    } else {
      EXPECT_EQ(comm.recv(room.data(), room.size(), 0), 5U);
      EXPECT_EQ(comm.send_recv(room.data(), 7, 0, room.data(), room.size(), 0), 3U);
      comm.recv_async(room.data(), room.size(), 0).wait();
    }
    const Statistics statistics = comm.statistics();
    EXPECT_EQ(find(statistics, "recv")->bytes, comm.rank() == 0 ? 7U : 5U + 3U + 9U);
    EXPECT_EQ(find(statistics, "send")->bytes, comm.rank() == 0 ? 5U + 3U + 9U : 7U);
  });
}

TEST(Accounts, LongCallsMoveData) {
  run_threads(2, [](Communicator& comm) {
    std::vector<float> data(100'000);
    comm.all_reduce(data, sum);
    const Statistics statistics = comm.statistics();
    EXPECT_GT(find(statistics, "all_reduce")->moving_s, 0);
  });
}

TEST(Accounts, AnyThreadMayRead) {
  run_threads(2, [](Communicator& comm) {
    std::atomic<bool> done = false;
    std::uint64_t seen = 0;
    std::thread reader([&] {
      while (!done) {
        for (const Statistics::Row& row : comm.statistics().rows) {
          EXPECT_GE(row.calls, seen);
          seen = row.calls;
        }
      }
    });
    std::vector<float> data(3);
    for (int i = 0; i < 1000; ++i) {
      comm.all_reduce(data, sum);
    }
    done = true;
    reader.join();
    EXPECT_EQ(comm.statistics().rows.front().calls, 1000U);
  });
}

// Tests the accounts alone: each part of a wait is charged to the rank that was waited for.
TEST(Accounts, PartsOfAWait) {
  const std::vector<int> members = {4, 5, 9};
  comm::CallCounts counts[comm::kCallKinds] = {};
  std::atomic<std::uint64_t> waited_for[2] = {};
  std::atomic<std::int32_t> most_for = 0;
  const comm::PublishedCosts shown{.calls = counts,
                                   .waited_for = {&waited_for[0], nullptr, &waited_for[1]},
                                   .most_for = &most_for};
  comm::Accounts accounts(members, shown, 2);
  accounts.begin(comm::kRecvKind, 8, true);
  int missing = 0;
  std::int64_t now_ns = 7;
  const auto peer = [&missing] { return missing; };
  const auto clock = [&now_ns] { return now_ns; };
  accounts.idle(peer, clock);  // not yet a wait
  accounts.idle(peer, clock);
  now_ns += 2'000'000;
  missing = 2;
  for (int polls = 0; polls < 16; ++polls) {
    accounts.idle(peer, clock);
  }
  now_ns += 6'000'000;
  EXPECT_EQ(counts[comm::kRecvKind].since_ns.load(), 2'000'007);
  accounts.advanced(clock);
  now_ns += 5'000'000;  // not a wait
  missing = -1;         // nobody in particular
  accounts.idle(peer, clock);
  accounts.idle(peer, clock);
  now_ns += 1'000'000;
  accounts.advanced(clock);
  accounts.end();
  Statistics statistics;
  accounts.read(statistics);
  ASSERT_EQ(statistics.rows.size(), 1U);
  const Statistics::Row& row = statistics.rows.front();
  EXPECT_EQ(row.what, "recv");
  EXPECT_DOUBLE_EQ(row.waiting_for_s[0], 0.002);
  EXPECT_EQ(row.waiting_for_s[1], 0);
  EXPECT_DOUBLE_EQ(row.waiting_for_s[2], 0.006);
  EXPECT_DOUBLE_EQ(row.waiting_s, 0.009);
  EXPECT_EQ(row.skew[0], 0U);
  EXPECT_EQ(row.skew[14], 1U);  // 8.2 to 16.4 ms
  EXPECT_EQ(counts[comm::kRecvKind].waited_ns.load(), 9'000'000U);
  EXPECT_EQ(waited_for[0].load(), 2'000'000U);
  EXPECT_EQ(waited_for[1].load(), 6'000'000U);
  EXPECT_EQ(counts[comm::kRecvKind].since_ns.load(), 0);
  EXPECT_EQ(most_for.load(), 10);  // rank 9
}

}  // namespace
}  // namespace unisono
