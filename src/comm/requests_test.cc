// Requests of asynchronous operations: sends that have finished before they are waited for,
// receives that nobody waits for, and windows of messages.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "comm/testing_ranks.h"
#include "unisono/statistics.hpp"

namespace unisono::comm {
namespace {

using namespace std::chrono_literals;

// Returns true once `is_true` returns true, and false if that takes longer than any correct run.
bool comes_true(const std::function<bool()>& is_true) {
  for (const auto end = std::chrono::steady_clock::now() + 60s; !is_true();) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(100us);
  }
  return true;
}

void expect_usage(const std::function<void()>& call, const char* what) {
  try {
    call();
    ADD_FAILURE() << what << " is not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage) << error.what();
  }
}

TEST(SendRequests, ThatHaveFinishedBehaveAsAllOthers) {
  testing::run_ranks(2, [](Communicator& comm) {
    const int other = 1 - comm.rank();
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{100000}}) {
      std::vector<std::byte> out(bytes);
      std::vector<std::byte> in(bytes);
      Request receive = comm.recv_async(in.data(), bytes, other);
      Request send = comm.send_async(out.data(), bytes, other);
      std::atomic<bool> was_told = false;  // by any thread, and perhaps after wait()
      send.on_done([&](const Error* error) { was_told = error == nullptr; });
      expect_usage([&] { send.received(); }, "received() of a send");
      expect_usage([&] { send.source(); }, "source() of a send");
      send.wait();
      EXPECT_TRUE(comes_true([&] { return was_told.load(); }));
      EXPECT_TRUE(send.test());
      expect_usage([&] { send.wait(); }, "a second wait()");
      receive.wait();
      EXPECT_EQ(receive.received(), bytes);
      // A request that nobody waits for does not mark the requests of other sends as waited for.
      Request dropped_receive = comm.recv_async(in.data(), bytes, other);
      {
        const Request dropped = comm.send_async(out.data(), bytes, other);
      }
      dropped_receive.wait();
    }
  });
}

// The receiver calls nothing while it waits, so the progress thread must find every receive,
// whether it sleeps, lingers or moves other messages when the receive is posted.
TEST(ReceiveRequests, ThatNobodyWaitsForAreCompleted) {
  testing::run_ranks(2, [](Communicator& comm) {
    constexpr int kRounds = 150;
    std::byte go{};
    for (int round = 0; round < kRounds; ++round) {
      std::vector<int> message(round % 3 == 0 ? 100000 : 4, round);
      const std::size_t bytes = message.size() * sizeof(int);
      if (comm.rank() == 1) {
        comm.recv(&go, 1, 0);
        comm.send(message.data(), bytes, 0);
        continue;
      }
      std::atomic<bool> is_done = false;
      std::vector<int> received(message.size(), -1);
      Request request = comm.recv_async(received.data(), bytes, 1);
      request.on_done([&](const Error*) { is_done = true; });
      comm.send(&go, 1, 1);
      ASSERT_TRUE(comes_true([&] { return is_done.load(); })) << "round " << round;
      request.wait();
      EXPECT_EQ(received, message);
      std::this_thread::sleep_for(round % 5 * 500us);
    }
  });
}

TEST(Windows, OfMessagesArriveInOrder) {
  constexpr std::array<std::size_t, 7> kSizes = {0, 8, 300, 5000, 65536, 70000, 300000};
  constexpr int kMessages = 300;
  testing::run_ranks(3, [&](Communicator& comm) {
    const auto bytes = [&](int i) { return kSizes[static_cast<std::size_t>(i) % kSizes.size()]; };
    const auto content = [](int from, int i) { return static_cast<std::byte>(from * 83 + i); };
    for (int shift = 1; shift < comm.size(); ++shift) {
      const int to = (comm.rank() + shift) % comm.size();
      const int from = (comm.rank() + comm.size() - shift) % comm.size();
      std::vector<std::vector<std::byte>> in;
      std::vector<std::vector<std::byte>> out;
      std::vector<Request> requests;
      for (int i = 0; i < kMessages; ++i) {
        in.emplace_back(bytes(i));
        out.emplace_back(bytes(i), content(comm.rank(), i));
      }
      for (std::size_t i = 0; i < in.size(); ++i) {
        requests.push_back(comm.recv_async(in[i].data(), in[i].size(), from));
        requests.push_back(comm.send_async(out[i].data(), out[i].size(), to));
      }
      for (Request& request : requests) {
        request.wait();
      }
      for (int i = 0; i < kMessages; ++i) {
        const std::vector<std::byte> expected(bytes(i), content(from, i));
        EXPECT_EQ(in[static_cast<std::size_t>(i)], expected) << "message " << i;
      }
    }
  });
}

TEST(Windows, DoNotHideASecondThreadInACollective) {
  std::atomic<bool> may_join = false;
  testing::run_ranks(2, [&](Communicator& comm) {
    std::byte message{};
    if (comm.rank() == 1) {
      EXPECT_TRUE(comes_true([&] { return may_join.load(); }));
      comm.barrier();
      comm.send(&message, 1, 0);
      return;
    }
    std::thread second([&] {
      EXPECT_TRUE(comes_true([&] {
        const Statistics statistics = comm.statistics();
        return !statistics.rows.empty() && statistics.rows.front().calls == 1;
      }));
      Request receive = comm.recv_async(&message, 1, 1);  // allowed beside a collective
      expect_usage([&] { comm.run_async({}).wait(); }, "a collective in a second thread");
      may_join = true;
      receive.wait();
    });
    comm.barrier();
    second.join();
  });
}

}  // namespace
}  // namespace unisono::comm
