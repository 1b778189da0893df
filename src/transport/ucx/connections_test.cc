// UCX tests beyond the conformance suite: which bytes are copied, which senders are accepted, and
// what happens when a peer leaves.
#include "transport/ucx/connections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "transport/tcp/connections.h"
#include "transport/tcp/testing.h"
#include "transport/ucx/ucx_transport.h"

// Memory that UCX allocates when it is loaded is never freed, because UCX does not expect to be
// unloaded.
extern "C" __attribute__((visibility("default"))) const char*
__lsan_default_suppressions();                          // NOLINT
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:libucs.so\nleak:libuct.so\nleak:libucp.so\n";
}

namespace unisono::ucx {
namespace {

constexpr std::uint64_t kGroup = 5;

class UcxConnectionsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ::setenv("UCX_TLS", GetParam(), 1);    // NOLINT(concurrency-mt-unsafe): before any thread
    ::setenv("UCX_NET_DEVICES", "lo", 1);  // NOLINT(concurrency-mt-unsafe): one, on every host
    mesh_ = tcp::socket_mesh(2, 1);
    for (int rank = 0; rank < 2; ++rank) {
      ranks_.push_back(std::make_unique<UcxConnections>(rank, 2));
    }
  }
  void TearDown() override { ::unsetenv("UCX_NET_DEVICES"); }  // NOLINT(concurrency-mt-unsafe)
  // `spoil` changes rank 0's introduction to rank 1.
  void meet(const std::function<void(std::string&)>& spoil = nullptr) {
    std::vector<std::string> to_0{"", ranks_[1]->introduction(0)};
    std::vector<std::string> to_1{ranks_[0]->introduction(1), ""};
    if (spoil != nullptr) {
      spoil(to_1[0]);
    }
    ranks_[0]->meet(std::make_unique<tcp::Connections>(0, std::move(mesh_[0])), to_0);
    ranks_[1]->meet(std::make_unique<tcp::Connections>(1, std::move(mesh_[1])), to_1);
  }
  bool comes_true(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < end) {
      for (const auto& rank : ranks_) {
        if (rank != nullptr) {
          rank->progress();
          rank->look_for_losses();
        }
      }
    }
    return condition();
  }
  void open() {
    for (int rank = 0; rank < 2; ++rank) {
      lanes_.push_back(std::make_unique<UcxTransport>(*ranks_[static_cast<std::size_t>(rank)],
                                                      transport::LaneKey{.group = kGroup},
                                                      std::vector<int>{0, 1}, rank));
    }
  }
  bool connected() {
    return comes_true([&] {
      const bool first = ranks_[0]->missing().empty();
      return ranks_[1]->missing().empty() && first;
    });
  }

  tcp::Mesh mesh_;
  std::vector<std::unique_ptr<UcxConnections>> ranks_;
  std::vector<std::unique_ptr<UcxTransport>> lanes_;
};

// Makes rank 0 drop rank 1's messages over UCX.
void wrong_pass(std::string& introduction) {
  introduction[0] = static_cast<char>(introduction[0] ^ 1);
}

std::vector<std::byte> bytes_of(std::size_t count) {
  std::vector<std::byte> data(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  return data;
}

// A host with two devices sends messages of this length in this way. Over one TCP device no message
// is this long.
TEST_P(UcxConnectionsTest, CopyNothingOfALongMessageThatIsFetched) {
  meet();
  ASSERT_TRUE(connected());
  open();
  const std::vector<std::byte> data = bytes_of(transport::kMostBytes);
  std::vector<std::byte> got(data.size());
  for (int lap = 0; lap < 20; ++lap) {
    std::fill(got.begin(), got.end(), std::byte{0});
    ASSERT_TRUE(lanes_[0]->share(1, data.data(), data.size(), 9));
    transport::Incoming message;
    ASSERT_TRUE(comes_true([&] { return lanes_[1]->peek_unread(0, message); }));
    ASSERT_TRUE(message.offered());
    ASSERT_TRUE(
        comes_true([&] { return lanes_[1]->fetch(0, 0, got.data(), got.size()) == got.size(); }));
    ASSERT_TRUE(got == data);
    lanes_[1]->release(0);
    ASSERT_TRUE(comes_true([&] { return lanes_[0]->flush(1); }));
  }
  EXPECT_EQ(ranks_[0]->shared().traffic.copied_bytes, 0U);
  EXPECT_EQ(ranks_[1]->shared().traffic.copied_bytes, 0U);
  EXPECT_EQ(ranks_[1]->shared().traffic.direct_bytes, 20 * data.size());
}

TEST_P(UcxConnectionsTest, AnnounceNothingWhereUcxCopiesAnyway) {
  meet();
  ASSERT_TRUE(connected());
  open();
  const bool copies = std::string(GetParam()) == "tcp";
  const std::vector<std::byte> data = bytes_of(transport::kMostBytes);
  const std::size_t most = lanes_[0]->shareable_bytes(1, data.data(), data.size());
  EXPECT_EQ(most, copies ? kEagerBytes : transport::kMostBytes);
  EXPECT_EQ(lanes_[0]->limits().slot_bytes, most);
  ASSERT_TRUE(lanes_[0]->share(1, data.data(), most, 9));
  std::byte* const room = lanes_[0]->reserve(1, most);
  ASSERT_NE(room, nullptr);
  std::memcpy(room, data.data(), most);
  lanes_[0]->commit(1, most, 9);
  for (const char* const how : {"shared", "copied"}) {
    std::vector<std::byte> got(most);
    transport::Incoming message;
    ASSERT_TRUE(comes_true([&] { return lanes_[1]->peek_unread(0, message); })) << how;
    EXPECT_EQ(message.offered(), !copies) << how;
    ASSERT_TRUE(comes_true([&] { return lanes_[1]->fetch(0, 0, got.data(), most) == most; }))
        << how;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), data.begin())) << how;
    lanes_[1]->release(0);
  }
}

TEST_P(UcxConnectionsTest, CountWhatIsCopied) {
  meet();
  ASSERT_TRUE(connected());
  open();
  const std::vector<std::byte> data = bytes_of(lanes_[0]->limits().slot_bytes);
  std::byte* const room = lanes_[0]->reserve(1, data.size());
  ASSERT_NE(room, nullptr);
  std::memcpy(room, data.data(), data.size());
  lanes_[0]->commit(1, data.size(), 3);
  EXPECT_EQ(ranks_[0]->shared().traffic.copied_bytes, data.size());
  transport::Incoming message;
  ASSERT_TRUE(comes_true([&] { return lanes_[1]->peek(0, message); }));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), message.data));
  lanes_[1]->release(0);
}

TEST_P(UcxConnectionsTest, DoNotHearWhoDoesNotKnowThePass) {
  meet(wrong_pass);
  ASSERT_TRUE(comes_true([&] { return ranks_[1]->missing().empty(); }))
      << "rank 1 hears rank 0, and what it says itself has gone";
  while (ranks_[0]->progress()) {
  }
  EXPECT_EQ(ranks_[0]->missing(), std::vector<int>{1}) << "rank 1 says what rank 0 never told";
  EXPECT_EQ(ranks_[0]->shared().traffic.come, 0U);
}

TEST_P(UcxConnectionsTest, NameAPeerThatHungUpBeforeItTold) {
  meet([](std::string& introduction) { introduction.clear(); });
  ASSERT_TRUE(comes_true([&] { return static_cast<bool>(ranks_[1]->first_loss()); }));
  EXPECT_EQ(ranks_[1]->first_loss().peer, 0);
  EXPECT_NE(ranks_[1]->first_loss().how.find("rank 0"), std::string::npos);
}

TEST_P(UcxConnectionsTest, NameAPeerThatIsGone) {
  meet();
  ASSERT_TRUE(connected());
  open();
  const std::vector<std::byte> data = bytes_of(transport::kMostBytes);
  ASSERT_TRUE(lanes_[0]->share(1, data.data(), data.size(), 9));
  lanes_[1].reset();
  ranks_[1].reset();  // without a last message
  ASSERT_TRUE(comes_true([&] { return static_cast<bool>(ranks_[0]->first_loss()); }));
  EXPECT_EQ(ranks_[0]->first_loss().peer, 1);
  EXPECT_FALSE(ranks_[0]->has_left(1));
  lanes_[0]->close();
}

TEST_P(UcxConnectionsTest, TellOfAPeerThatLeavesBehindAllThatItSent) {
  meet();
  ASSERT_TRUE(connected());
  open();
  ASSERT_TRUE(lanes_[0]->send(1, "word", 4, 2));
  ranks_[0]->leave("farewell");
  ASSERT_TRUE(comes_true([&] { return ranks_[1]->has_left(0); }));
  EXPECT_EQ(ranks_[1]->farewell_of(0), "farewell");
  transport::Incoming message;
  ASSERT_TRUE(lanes_[1]->peek(0, message));
  EXPECT_EQ(message.bytes, 4U);
  EXPECT_FALSE(static_cast<bool>(ranks_[1]->first_loss()));
  EXPECT_TRUE(comes_true([&] { return ranks_[0]->delivered([](int) { return false; }, 1000); }));
}

TEST_P(UcxConnectionsTest, TellOnceOfAPeerThatLeavesWithoutAWordOverUcx) {
  meet(wrong_pass);
  ranks_[1]->leave({});
  ASSERT_TRUE(comes_true([&] { return ranks_[0]->has_left(1); }));
  ranks_[0]->look_for_losses();
  const int events = ranks_[0]->events();
  for (int look = 0; look < 10; ++look) {
    ranks_[0]->look_for_losses();
  }
  EXPECT_EQ(ranks_[0]->events(), events);
}

TEST_P(UcxConnectionsTest, CarryAbortsOverTheOtherConnection) {
  meet();
  ASSERT_TRUE(connected());
  ranks_[0]->abort("why");
  ASSERT_TRUE(comes_true([&] { return ranks_[1]->aborted().has_value(); }));
  EXPECT_EQ(ranks_[1]->aborted()->peer, 0);
  EXPECT_EQ(ranks_[1]->aborted()->reason, "why");
}

TEST_P(UcxConnectionsTest, WakeASleeper) {
  meet();
  ASSERT_TRUE(connected());
  open();
  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    lanes_[0]->send(1, "x", 1, 1);
    lanes_[0]->flush(1);
  });
  transport::Incoming message;
  bool woken = true;
  int sleeps = 0;
  for (; woken && !lanes_[1]->peek(0, message) && sleeps < 1000; ++sleeps) {
    woken = ranks_[1]->wait(20'000'000);  // once; or UCX had an event of its own
  }
  sender.join();
  EXPECT_TRUE(woken);
  EXPECT_EQ(message.bytes, 1U);
  EXPECT_LT(sleeps, 1000);
}

INSTANTIATE_TEST_SUITE_P(Over, UcxConnectionsTest, ::testing::Values("tcp", "sm"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(Ucx, NamesItsDevices) {
  ::setenv("UCX_TLS", "tcp", 1);  // NOLINT(concurrency-mt-unsafe)
  ASSERT_EQ(why_no_ucx(), "");
  EXPECT_FALSE(version().empty());
  ASSERT_FALSE(devices().empty());
  for (const std::string& device : devices()) {
    EXPECT_EQ(device.substr(0, 4), "tcp/");
  }
}

TEST(Ucx, CopiesOnlyOverTheSystemsTcp) {
  ::setenv("UCX_NET_DEVICES", "lo", 1);  // NOLINT(concurrency-mt-unsafe)
  ::setenv("UCX_TLS", "tcp,self", 1);    // NOLINT(concurrency-mt-unsafe)
  EXPECT_TRUE(Worker(0, 2).only_copies());
  ::setenv("UCX_TLS", "tcp,sm,self", 1);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_FALSE(Worker(0, 2).only_copies());
  ::unsetenv("UCX_TLS");          // NOLINT(concurrency-mt-unsafe)
  ::unsetenv("UCX_NET_DEVICES");  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace
}  // namespace unisono::ucx
