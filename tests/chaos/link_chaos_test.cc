// Two ranks over an emulated link; with UNISONO_TEST_FULL, through more damaged streams. A failure
// prints the seed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "chaos/relay.h"
#include "transport/tcp/tcp_transport.h"
#include "transport/tcp/testing.h"

namespace unisono::tcp {
namespace {

using chaos::Damage;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSizes[] = {8, 300, 20'000, 150'000, 1000, 64, 200'000, 0};

std::vector<std::byte> pattern(std::uint64_t i) {
  std::vector<std::byte> data(kSizes[i % std::size(kSizes)]);
  std::mt19937_64 random(i);
  for (std::byte& byte : data) {
    byte = static_cast<std::byte>(random());
  }
  return data;
}

// Rank 0 and rank 1, and the emulated link between them.
class Pair {
 public:
  explicit Pair(chaos::RelayOptions options, const Protection& protection = {},
                int silence_ms = 2000) {
    SocketPair here = socket_pair();
    SocketPair there = socket_pair();
    relay_ =
        std::make_unique<chaos::Relay>(std::move(here.b), std::move(there.a), std::move(options));
    auto [a, b] = protect({std::move(here.a), std::move(there.b)}, protection);
    const auto make = [&](int rank, Channel channel) {
      Channels channels(2);
      channels[static_cast<std::size_t>(1 - rank)].push_back(std::move(channel));
      connections_[rank] = std::make_unique<Connections>(
          rank, std::move(channels), ConnectionsOptions{.silence_ms = silence_ms});
      transports_[rank] = std::make_unique<TcpTransport>(
          *connections_[rank], transport::LaneKey{.group = 1}, std::vector<int>{0, 1}, rank);
    };
    make(0, std::move(a));
    make(1, std::move(b));
  }
  chaos::Relay& relay() { return *relay_; }
  Connections& at(int rank) { return *connections_[rank]; }
  TcpTransport& transport(int rank) { return *transports_[rank]; }

  struct Outcome {
    std::uint64_t right = 0;
    std::uint64_t wrong = 0;
    Failure failure;  // the failure of either side
  };
  // Rank 0 sends this many messages; rank 1 checks each.
  Outcome send(std::uint64_t messages, std::chrono::milliseconds limit) {
    Outcome outcome;
    std::uint64_t sent = 0;
    std::vector<std::vector<std::byte>> shared;
    for (const auto end = Clock::now() + limit; Clock::now() < end;) {
      if (sent < messages) {
        std::vector<std::byte> data = pattern(sent);
        const bool taken = data.size() <= 1024
                               ? transport(0).send(1, data.data(), data.size(), sent)
                               : transport(0).share(1, data.data(), data.size(), sent);
        if (taken) {
          shared.push_back(std::move(data));  // kept until the end
          ++sent;
        }
      }
      at(0).progress();
      transport::Incoming message;
      while (transport(1).peek(0, message)) {
        const std::vector<std::byte> want = pattern(outcome.right + outcome.wrong);
        const bool same = message.bytes == want.size() &&
                          std::equal(want.begin(), want.end(), message.data) &&
                          message.signature == outcome.right + outcome.wrong;
        ++(same ? outcome.right : outcome.wrong);
        transport(1).release(0);
      }
      const auto now_us =
          std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch());
      at(0).look_at_streams(now_us.count());
      at(1).look_at_streams(now_us.count());
      outcome.failure = at(1).failure() ? at(1).failure() : at(0).failure();
      if (outcome.failure || outcome.right + outcome.wrong == messages) {
        break;
      }
      at(1).wait(500);
    }
    return outcome;
  }

 private:
  std::unique_ptr<chaos::Relay> relay_;
  std::unique_ptr<Connections> connections_[2];
  std::unique_ptr<TcpTransport> transports_[2];
};

std::string opaque(const Failure& failure) {
  return failure ? describe(failure) : "no failure";
}

TEST(LinkChaos, DelayJitterLossAndRateChangeNoResult) {
  for (const char* text : {"delay=2ms,jitter=3ms,seed=1", "loss=2%,seed=2",
                           "rate=200Mbit,jitter=1ms,seed=3", "delay=20ms,loss=1%,seed=4"}) {
    for (const Protection& protection : {Protection{}, Protection{.tls = true}}) {
      Pair pair({.link = chaos::parse(text).value->link}, protection);
      const auto outcome = pair.send(24, std::chrono::seconds(20));
      EXPECT_EQ(outcome.right, 24U) << text << ": " << opaque(outcome.failure);
      EXPECT_EQ(outcome.wrong, 0U) << text;
    }
  }
}

// Damage of all kinds at random places: the connection is dropped with a reason that names the
// peer, or the damage has no effect; a wrong message never arrives. Without checksums one would.
TEST(LinkChaos, DamageIsNeverDelivered) {
  const bool full = std::getenv("UNISONO_TEST_FULL") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  const int count = full ? 1000 : 60;
  int noticed = 0;
  for (int seed = 0; seed < count; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const Damage damage{.kind = static_cast<Damage::Kind>(1 + random() % 4),
                        .at = random() % 600'000,
                        .bytes = 1 + random() % (random() % 2 == 0 ? 100 : 40'000)};
    Pair pair({.damage = damage}, {.checksum = true}, 200);
    const auto outcome = pair.send(16, std::chrono::seconds(3));
    ASSERT_EQ(outcome.wrong, 0U) << "seed " << seed;
    // If the end of the last message is lost, the rank waits for it until the operation's time
    // limit.
    ASSERT_TRUE(outcome.failure || outcome.right == 16 || damage.kind == Damage::Kind::cut)
        << "seed " << seed;
    if (outcome.failure) {
      ++noticed;
      EXPECT_NE(describe(outcome.failure).find("rank "), std::string::npos);
    }
  }
  EXPECT_GT(noticed, count * 3 / 4);
}

// Shows that the test above can fail.
TEST(LinkChaos, WithoutChecksumsDamageIsDelivered) {
  Pair pair({.damage = {.kind = Damage::Kind::flip, .at = 50'000}}, {}, 200);
  EXPECT_EQ(pair.send(16, std::chrono::seconds(10)).wrong, 1U);
}

TEST(LinkChaos, NamesAChecksumThatIsWrong) {
  Pair pair({.damage = {.kind = Damage::Kind::flip, .at = 50'000}}, {.checksum = true});
  const auto outcome = pair.send(16, std::chrono::seconds(10));
  EXPECT_EQ(describe(outcome.failure),
            "the connection to rank 0 carried a damaged message: its checksum is wrong");
}

TEST(LinkChaos, EncryptionNoticesWhatIsForged) {
  for (const Damage::Kind kind : {Damage::Kind::flip, Damage::Kind::cut, Damage::Kind::repeat}) {
    Pair pair({.damage = {.kind = kind, .at = 60'000, .bytes = 10}}, {.tls = true}, 300);
    const auto outcome = pair.send(16, std::chrono::seconds(10));
    EXPECT_EQ(outcome.wrong, 0U);
    EXPECT_EQ(outcome.failure.reason, Reason::tls) << opaque(outcome.failure);
  }
}

TEST(LinkChaos, AResetNamesThePeer) {
  for (const bool tls : {false, true}) {
    Pair pair({}, {.tls = tls});
    ASSERT_EQ(pair.send(8, std::chrono::seconds(10)).right, 8U);
    pair.relay().reset();
    Failure failure;
    for (int i = 0; i < 2000 && !failure; ++i) {
      pair.at(1).wait(1000);
      failure = pair.at(1).failure();
    }
    EXPECT_EQ(failure.reason, Reason::closed);
    EXPECT_EQ(failure.peer, 0);
  }
}

TEST(LinkChaos, AResetInTheMiddleIsNoticed) {
  Pair pair({});
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    pair.relay().reset();
  });
  const auto outcome = pair.send(100'000, std::chrono::seconds(10));
  later.join();
  EXPECT_EQ(outcome.failure.reason, Reason::closed) << opaque(outcome.failure);
  EXPECT_EQ(outcome.wrong, 0U);
}

// A reader that reads almost nothing: the sender holds only its windows.
TEST(LinkChaos, ASlowLinkBoundsWhatTheSenderHolds) {
  Pair pair({.link = chaos::parse("rate=80kbit").value->link});
  const std::vector<std::byte> data(transport::kMostBytes);
  std::size_t taken = 0;
  for (const auto end = Clock::now() + std::chrono::milliseconds(300); Clock::now() < end;) {
    taken += pair.transport(0).share(1, data.data(), data.size(), 0) ? 1U : 0U;
    taken += pair.transport(0).send(1, data.data(), 1000, 0) ? 1U : 0U;
    pair.at(0).progress();
  }
  EXPECT_LE(taken, 8 + transport::kShortWindow / 1000);
  EXPECT_LE(pair.at(0).link(1)->slots(), 8U);
  EXPECT_FALSE(pair.at(0).failure());
}

// Returns the data that an eavesdropper sees.
std::string overheard(const Protection& protection, const std::string& payload) {
  std::string seen;
  std::mutex mutex;
  Pair pair({.tap =
                 [&](std::span<const std::byte> bytes) {
                   const std::lock_guard lock(mutex);
                   seen.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                 }},
            protection);
  EXPECT_TRUE(pair.transport(0).send(1, payload.data(), payload.size(), 7));
  transport::Incoming message;
  for (int looks = 0; looks < 5000 && !pair.transport(1).peek(0, message); ++looks) {
    pair.at(0).progress();
    pair.at(1).wait(1000);
  }
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(message.data), message.bytes), payload);
  const std::lock_guard lock(mutex);
  return seen;
}

TEST(LinkChaos, EncryptedPayloadsAreNotSeenOnTheWay) {
  const std::string payload = "these forty bytes are nobody else's to see";
  EXPECT_NE(overheard({}, payload).find(payload), std::string::npos) << "the tap hears";
  const std::string seen = overheard({.tls = true}, payload);
  EXPECT_GT(seen.size(), payload.size());
  for (std::size_t at = 0; at + 8 <= payload.size(); ++at) {
    EXPECT_EQ(seen.find(payload.substr(at, 8)), std::string::npos);
  }
}

}  // namespace
}  // namespace unisono::tcp
