// The connections of a rank: concurrent groups, waiting and waking, leaving and death.
#include "transport/tcp/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/testing.h"

namespace unisono::tcp {
namespace {

// Two ranks of one process.
class TcpPair : public ::testing::Test {
 protected:
  explicit TcpPair(const SocketOptions& socket = {}) {
    Mesh mesh = socket_mesh(2, 1, "127.0.0.1", socket);
    a_ = std::make_unique<Connections>(0, std::move(mesh[0]), options_);
    b_ = std::make_unique<Connections>(1, std::move(mesh[1]), options_);
  }
  static std::unique_ptr<TcpTransport> group(Connections& connections, std::uint64_t number) {
    return std::make_unique<TcpTransport>(connections, transport::LaneKey{.group = number},
                                          std::vector<int>{0, 1}, connections.rank());
  }
  bool arrives(transport::Transport& at, std::size_t bytes, std::uint64_t signature) {
    // Limits the time and not the number of polls: on a busy machine the kernel may deliver
    // loopback data much later.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    transport::Incoming message;
    while (std::chrono::steady_clock::now() < end) {
      a_->progress();
      if (at.peek(1 - at.rank(), message)) {
        const bool right = message.bytes == bytes && message.signature == signature;
        at.release(1 - at.rank());
        return right;
      }
    }
    return false;
  }

  ConnectionsOptions options_{.slots = 4};
  std::unique_ptr<Connections> a_;
  std::unique_ptr<Connections> b_;
};

class TcpTinyPair : public TcpPair {
 protected:
  TcpTinyPair() : TcpPair({.send_buffer = 2048}) {}
};

// If each end has received as many frames as the other has sent, nothing is in transit, even if
// some messages are unread.
TEST_F(TcpPair, CountsFramesExceptReports) {
  const auto quiet = [&] {
    const transport::Frames a = a_->frames(1);
    const transport::Frames b = b_->frames(0);
    return a.sent == b.received && b.sent == a.received;
  };
  const auto await = [](const auto& done, const auto& progress) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) {
      progress();
    }
    return done();
  };
  const auto a1 = group(*a_, 1);
  const auto b1 = group(*b_, 1);
  const auto reports_a = group(*a_, transport::kReportGroup);
  const auto reports_b = group(*b_, transport::kReportGroup);
  ASSERT_TRUE(reports_a->send(1, "r", 1, 1));
  ASSERT_TRUE(arrives(*reports_b, 1, 1));
  EXPECT_EQ(a_->frames(1), transport::Frames{});
  EXPECT_EQ(b_->frames(0), transport::Frames{});

  ASSERT_TRUE(a1->send(1, "m", 1, 2));
  EXPECT_EQ(a_->frames(1).sent, 1U);
  EXPECT_FALSE(quiet()) << "nothing has been read from the socket";
  EXPECT_TRUE(await(quiet, [&] { b_->progress(); })) << "it has come, and waits for its reader";
  ASSERT_TRUE(arrives(*b1, 1, 2));

  // A long message counts once all of its data has arrived. The payload of the second one stays in
  // the socket until its reader names a destination, or another lane needs the stream.
  std::vector<std::byte> data(transport::kMostBytes);
  ASSERT_TRUE(a1->share(1, data.data(), data.size(), 3));
  ASSERT_TRUE(arrives(*b1, data.size(), 3));
  ASSERT_TRUE(a1->share(1, data.data(), data.size(), 4));
  transport::Incoming message;
  ASSERT_TRUE(await([&] { return b1->peek_unread(0, message); }, [&] { a_->progress(); }));
  EXPECT_TRUE(message.offered());
  EXPECT_FALSE(quiet());
  for (std::size_t got = 0; got < data.size();) {
    got += b1->fetch(0, got, data.data() + got, data.size() - got);
    a_->progress();
  }
  b1->release(0);
  EXPECT_TRUE(await(quiet, [&] {
    a_->progress();
    b_->progress();
  })) << "also where the release is reported in a frame";
}

// No thread reads group 1, so its window fills on both sides, but not beyond its limit. Group 2
// continues.
TEST_F(TcpPair, AGroupThatNobodyReadsStopsNoOther) {
  const auto a1 = group(*a_, 1);
  const auto b1 = group(*b_, 1);
  const auto a2 = group(*a_, 2);
  const auto b2 = group(*b_, 2);
  const std::vector<std::byte> data(transport::kMostBytes);
  int sent = 0;
  for (int tries = 0; tries < 200; ++tries) {
    sent += a1->share(1, data.data(), data.size(), 1) ? 1 : 0;
    b_->progress();
  }
  EXPECT_EQ(sent, options_.slots);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::size_t bytes = i % 10 == 0 ? transport::kMostBytes : 100;
    const bool taken =
        bytes > 1024 ? a2->share(1, data.data(), bytes, i) : a2->send(1, data.data(), bytes, i);
    ASSERT_TRUE(taken) << i;
    ASSERT_TRUE(arrives(*b2, bytes, i)) << i;
  }
  EXPECT_LE(b_->link(0)->slots(), 2U * static_cast<std::size_t>(options_.slots));
  for (int i = 0; i < sent; ++i) {
    EXPECT_TRUE(arrives(*b1, transport::kMostBytes, 1));
  }
}

TEST_F(TcpTinyPair, AGroupThatIsClosedInTheMiddleOfAMessageStopsNoOther) {
  auto a1 = group(*a_, 1);
  const auto a2 = group(*a_, 2);
  const auto b2 = group(*b_, 2);
  {
    const std::vector<std::byte> data(transport::kMostBytes);
    ASSERT_TRUE(a1->share(1, data.data(), data.size(), 1));
    ASSERT_TRUE(a1->send(1, data.data(), 100, 1));
    ASSERT_FALSE(a1->drained(1, a1->mark(1)));
    a1.reset();  // and its memory with it
  }
  ASSERT_TRUE(a2->send(1, "abc", 3, 77));
  EXPECT_TRUE(arrives(*b2, 3, 77));
  EXPECT_EQ(describe(b_->failure()), "");
}

TEST_F(TcpTinyPair, WhatTheKernelDoesNotTakeGoesOutTogether) {
  const auto a1 = group(*a_, 1);
  const auto b1 = group(*b_, 1);
  const std::vector<std::byte> data(transport::kMostBytes);
  ASSERT_TRUE(a1->share(1, data.data(), data.size(), 0));
  for (std::uint64_t i = 1; i < 200; ++i) {
    ASSERT_TRUE(a1->send(1, &i, sizeof(i), i));
  }
  EXPECT_FALSE(a1->flush(transport::kEveryLane));
  ASSERT_TRUE(arrives(*b1, transport::kMostBytes, 0));
  for (std::uint64_t i = 1; i < 200; ++i) {
    ASSERT_TRUE(arrives(*b1, sizeof(i), i));
  }
  EXPECT_TRUE(a1->flush(transport::kEveryLane));
}

// Data that group 1 cannot send does not concern group 2, whose messages have all been sent.
TEST(TcpFlush, WaitsForItsOwnGroupAlone) {
  const std::vector<std::byte> data(transport::kMostBytes);
  Mesh mesh = socket_mesh(3, 1, "127.0.0.1", {.send_buffer = 2048});
  Connections a(0, std::move(mesh[0]));
  TcpTransport first(a, {.group = 1}, {0, 1}, 0);
  TcpTransport second(a, {.group = 2}, {0, 2}, 0);
  while (first.share(1, data.data(), data.size(), 1)) {
  }
  ASSERT_TRUE(second.send(1, "x", 1, 1));
  EXPECT_FALSE(first.flush(transport::kEveryLane));
  EXPECT_TRUE(second.flush(transport::kEveryLane));
  Connections(1, std::move(mesh[1])).leave({});
  for (int i = 0; i < 1000 && !a.has_left(1); ++i) {
    a.wait(1000);
  }
  EXPECT_TRUE(first.flush(transport::kEveryLane)) << "nobody is there to take it";
}

TEST_F(TcpPair, AbortReachesTheOther) {
  a_->abort("rank 0 has had enough");
  for (int i = 0; i < 1000 && !b_->aborted(); ++i) {
    b_->wait(1000);
  }
  ASSERT_TRUE(b_->aborted());
  EXPECT_EQ(b_->aborted()->peer, 0);
  EXPECT_EQ(b_->aborted()->reason, "rank 0 has had enough");
}

TEST_F(TcpPair, LeavingIsNoFailure) {
  a_->leave("the last call was a barrier");
  a_.reset();
  for (int i = 0; i < 1000 && !b_->has_left(0); ++i) {
    b_->wait(1000);
  }
  EXPECT_TRUE(b_->has_left(0));
  EXPECT_EQ(b_->farewell_of(0), "the last call was a barrier");
  EXPECT_FALSE(b_->failure());
}

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

TEST_F(TcpPair, WaitingEndsWhenSomethingComesAndWhenWoken) {
  const auto a1 = group(*a_, 1);
  const auto b1 = group(*b_, 1);
  using Clock = std::chrono::steady_clock;
  const auto ms_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  };
  b_->wait(0);  // a thread's first call tells it to look
  EXPECT_FALSE(b_->wait(2000)) << "nothing comes";
  auto begin = Clock::now();
  std::thread sender([&] {
    sleep_ms(5);
    a1->send(1, "x", 1, 1);
  });
  EXPECT_TRUE(b_->wait(10'000'000));
  EXPECT_GE(ms_since(begin), 4);
  sender.join();
  EXPECT_TRUE(arrives(*b1, 1, 1));
  while (b_->wait(0)) {
  }
  begin = Clock::now();
  std::thread waker([&] {
    sleep_ms(5);
    b_->wake();
  });
  EXPECT_TRUE(b_->wait(10'000'000));
  EXPECT_GE(ms_since(begin), 4);
  waker.join();
  EXPECT_LT(ms_since(begin), 5000);
  while (b_->wait(0)) {
  }
  begin = Clock::now();
  EXPECT_FALSE(b_->wait(2000)) << "the ring was taken";
  EXPECT_GE(ms_since(begin), 2);
}

// Each of two threads reads for both, and so may take data for which the other thread sleeps.
TEST_F(TcpPair, NobodySleepsOverWhatAnotherThreadHasRead) {
  const auto a1 = group(*a_, 1);
  const auto a2 = group(*a_, 2);
  const auto b1 = group(*b_, 1);
  const auto b2 = group(*b_, 2);
  constexpr int kMessagesEach = 300;
  std::atomic<bool> all = false;
  std::atomic<int> got = 0;
  const auto read = [&](TcpTransport& from) {
    transport::Incoming message;
    for (int i = 0; i < kMessagesEach; ++i) {
      while (!from.peek(0, message)) {
        if (!b_->wait(60'000'000)) {
          return;
        }
      }
      from.release(0);
      ++got;
    }
  };
  std::thread one([&] { read(*b1); });
  std::thread two([&] { read(*b2); });
  std::thread meddler([&] {
    while (!all) {
      b_->progress();
      std::this_thread::yield();
    }
  });
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kMessagesEach; ++i) {
    ASSERT_TRUE(a1->send(1, "1", 1, 0));
    ASSERT_TRUE(a2->send(1, "2", 1, 0));
    while (got < 2 * (i + 1) &&
           std::chrono::steady_clock::now() - begin < std::chrono::seconds(50)) {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(got, 2 * kMessagesEach) << "somebody sleeps";
  one.join();
  two.join();
  all = true;
  meddler.join();
}

TEST_F(TcpPair, AFailureWakesAllWhoSleep) {
  const auto b1 = group(*b_, 1);
  std::vector<std::thread> sleepers;
  std::atomic<int> awake = 0;
  for (int i = 0; i < 3; ++i) {
    sleepers.emplace_back([&] {
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (b_->events() == 0 && std::chrono::steady_clock::now() < end) {
        b_->wait(60'000'000);
      }
      awake += std::chrono::steady_clock::now() < end ? 1 : 0;
    });
  }
  sleep_ms(5);
  a_.reset();
  for (std::thread& sleeper : sleepers) {
    sleeper.join();
  }
  EXPECT_EQ(awake, 3);
}

// Data was fetched to the caller's memory, which is freed when the lane is closed. Then another
// group needs the stream.
TEST_F(TcpPair, LooksAtNoFetchedMemoryAfterClose) {
  const auto a1 = group(*a_, 1);
  const auto b1 = group(*b_, 1);
  std::vector<std::byte> data(transport::kMostBytes);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>(i * 7);
  }
  // The reader expects another long message after a long one, so its payload is not read ahead.
  ASSERT_TRUE(a1->share(1, data.data(), data.size(), 0));
  ASSERT_TRUE(arrives(*b1, data.size(), 0));
  ASSERT_TRUE(a1->share(1, data.data(), data.size(), 1));
  transport::Incoming message;
  for (int looks = 0; looks < 1000 && !b1->peek_unread(0, message); ++looks) {
    a_->flush();
    sleep_ms(1);
  }
  ASSERT_TRUE(message.offered());
  auto target = std::make_unique<std::vector<std::byte>>(1000);
  ASSERT_EQ(b1->fetch(0, 0, target->data(), 100), 64U);  // 36 are there and not yet reported
  b1->close();
  target.reset();
  const auto a2 = group(*a_, 2);
  const auto b2 = group(*b_, 2);
  ASSERT_TRUE(a2->share(1, data.data(), data.size(), 2));
  for (int looks = 0; looks < 1000; ++looks) {
    a_->progress();
    b_->progress();
  }
  EXPECT_TRUE(arrives(*b2, data.size(), 2));
}

// After a group is closed, the link must not use the group's memory, even if the peer has left.
TEST_F(TcpTinyPair, SendsNothingMoreToAPeerThatHasLeft) {
  auto a1 = group(*a_, 1);
  const auto a2 = group(*a_, 2);
  auto data = std::make_unique<std::vector<std::byte>>(transport::kMostBytes);
  ASSERT_TRUE(a1->share(1, data->data(), data->size(), 1));
  ASSERT_FALSE(a1->drained(1, a1->mark(1)));
  b_->leave({});
  for (int i = 0; i < 1000 && !a_->has_left(1); ++i) {
    a_->wait(1000);
  }
  ASSERT_TRUE(a_->has_left(1));
  a1.reset();
  data.reset();
  const std::uint64_t told = a_->traffic().told;
  EXPECT_FALSE(a2->send(1, "x", 1, 1));
  a_->flush();
  EXPECT_EQ(a_->traffic().told, told);
}

// One stream of several dies while the others continue.
TEST(TcpStreams, ADeadStreamIsTheEndOfTheLink) {
  Mesh mesh = socket_mesh(2, 2);
  Connections a(0, std::move(mesh[0]));
  Connections b(1, std::move(mesh[1]));
  ::shutdown(b.link(0)->descriptor(1), SHUT_RDWR);
  std::int64_t now_us = 1'000'000;
  for (int i = 0; i < 20 && !a.failure(); ++i, now_us += 200'000) {
    sleep_ms(1);
    a.look_at_streams(now_us);
  }
  EXPECT_EQ(a.failure().reason, Reason::closed);
}

// The link must read the data on the second stream before it reports that the peer has left.
TEST(TcpStreams, LeavingIsSaidOnEach) {
  Mesh mesh = socket_mesh(2, 2);
  Connections a(0, std::move(mesh[0]));
  Connections b(1, std::move(mesh[1]));
  TcpTransport a1(a, {.group = 1}, {0, 1}, 0);
  TcpTransport b1(b, {.group = 1}, {0, 1}, 1);
  const std::vector<std::byte> data(100'000);
  ASSERT_TRUE(a1.share(1, data.data(), data.size(), 0));
  ASSERT_TRUE(a1.share(1, data.data(), data.size(), 1));  // by the second stream
  a.leave({});
  while (!a.flush()) {
    b.progress();
  }
  for (int i = 0; i < 1000 && !b.has_left(0); ++i) {
    b.wait(1000);
  }
  transport::Incoming message;
  ASSERT_TRUE(b1.peek(0, message));
  b1.release(0);
  EXPECT_TRUE(b1.peek(0, message));
}

}  // namespace
}  // namespace unisono::tcp
