// Ranks that die, or find no descriptor, while the ranks on several hosts connect.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "bootstrap/net.h"
#include "bootstrap/net_setup.h"
#include "bootstrap/probe.h"
#include "bootstrap/testing.h"

namespace unisono::comm {
namespace {

using testing::Child;
using testing::FewDescriptors;
using testing::net_options;
using testing::SharedEvent;
using testing::unique_name;
using Clock = std::chrono::steady_clock;

constexpr int kRanks = 4;
constexpr int kTimeoutMs = 30'000;
// Limit for naming a dead rank. An idle machine takes less than a second. The limit is larger for
// busy machines, but smaller than the timeout, which must not be needed.
constexpr int kKnownMs = 10'000;

std::string milliseconds_since(Clock::time_point begin) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count());
}

// Returns a text such as "2 310 ...": the lost rank, the time in milliseconds, and the error text.
// A connected rank waits as a communicator would, until a connection ends. No rank leaves before
// all survivors have named a rank, as a communicator would notify the others before it leaves.
std::string lose(int rank, const std::string& job, int pause_ms, const SharedEvent& named) {
  const ConnectOptions options = net_options(rank, kRanks, job, kTimeoutMs);
  NetMeeting meeting = meet_over_network(options);
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  tcp::Channels kept;
  const auto keep = [&](tcp::Channels streams, const Error&) { kept = std::move(streams); };
  try {
    const tcp::Channels streams = connect_hosts(meeting, kTimeoutMs, {}, keep);
    for (;;) {
      for (std::size_t peer = 0; peer < streams.size(); ++peer) {
        for (const tcp::Channel& stream : streams[peer]) {
          if (tcp::is_dead(stream.get())) {
            const std::string ms = milliseconds_since(begin);
            named.happen();
            named.wait(kRanks - 1);
            return std::to_string(peer) + " " + ms + " after connecting";
          }
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (const Error& error) {
    const std::string ms = milliseconds_since(begin);
    named.happen();
    named.wait(kRanks - 1);
    return std::to_string(error.context().peer) + " " + ms + " " + error.what();
  }
}

// The victim dies `when_ms` after the ranks have their table, or, with -1, when it is connected
// itself.
void expect_named(int victim, int when_ms, int seed) {
  const std::string job = unique_name("death");
  std::mt19937 random(static_cast<unsigned>(seed));
  const SharedEvent named;
  std::vector<Child> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    const int pause_ms = static_cast<int>(random() % 60);
    ranks.emplace_back(
        [&, pause_ms](int self) -> std::string {
          if (self != victim) {
            return lose(self, job, pause_ms, named);
          }
          NetMeeting meeting = meet_over_network(net_options(self, kRanks, job, kTimeoutMs));
          if (when_ms < 0) {
            const tcp::Channels streams = connect_hosts(meeting, kTimeoutMs);
            ::kill(::getpid(), SIGKILL);
          }
          std::thread([when_ms] {
            std::this_thread::sleep_for(std::chrono::milliseconds(when_ms));
            ::kill(::getpid(), SIGKILL);
          }).detach();
          const tcp::Channels streams = connect_hosts(meeting, kTimeoutMs);
          std::this_thread::sleep_for(std::chrono::seconds(10));
          return "";
        },
        rank);
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string said = ranks[static_cast<std::size_t>(rank)].result();
    if (rank == victim) {
      continue;
    }
    std::istringstream words(said);
    int lost = -1;
    int ms = 1 << 30;
    words >> lost >> ms;
    EXPECT_EQ(lost, victim) << "rank " << rank << ", seed " << seed << ": " << said;
    EXPECT_LT(ms, std::max(when_ms, 60) + kKnownMs) << "rank " << rank << ": " << said;
  }
}

TEST(NetDeath, ARankThatDiesInTheMeetingIsNamedByAllWithinASecond) {
  for (int seed = 0; seed < 16; ++seed) {
    expect_named(seed % kRanks, seed * 4, seed);
  }
}

TEST(NetDeath, ARankThatDiesWhenItAloneIsConnectedIsNamed) {
  for (int victim = 0; victim < kRanks; ++victim) {
    expect_named(victim, -1, victim);
  }
}

// A flood fills the queue of a slow rank, and its system drops connection requests.
TEST(NetDeath, AListenerWhoseQueueIsFullIsNotTakenForGone) {
  const UniqueFd listener = tcp::reserve(*tcp::Address::parse("127.0.0.1:0").value);
  ASSERT_TRUE(listener);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const tcp::Address at = tcp::local_address(listener.get());
  std::vector<UniqueFd> queue;
  for (int i = 0; i < 8; ++i) {
    queue.push_back(tcp::begin_connect(at, nullptr, {}));
  }
  tcp::HostMonitor monitor({at});
  bool was_in_doubt = false;
  for (const auto end = Clock::now() + std::chrono::milliseconds(2500); Clock::now() < end;) {
    monitor.step(tcp::clock_ms());
    was_in_doubt |= monitor.is_in_doubt(tcp::clock_ms());
    ASSERT_FALSE(monitor.host_is_gone(tcp::clock_ms()));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(was_in_doubt);
}

TEST(NetDeath, RankZeroThatDiesBeforeItTellsTheTableIsNamedAtOnce) {
  const std::string job = unique_name("root");
  Child root(
      [&](int rank) {
        return testing::run_one(
            [&](int self) {
              static_cast<void>(meet_over_network(net_options(self, 3, job, kTimeoutMs)));
              return std::string();
            },
            rank);
      },
      0);
  const auto begin = Clock::now();
  Child one(
      [&](int rank) -> std::string {
        static_cast<void>(meet_over_network(net_options(rank, 3, job, kTimeoutMs)));
        return "";
      },
      1);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  ::kill(root.pid(), SIGKILL);
  root.result();
  const std::string said = one.result();
  EXPECT_EQ(said.find("peer_lost: rank 1 lost rank 0 during the rendezvous"), 0U) << said;
  EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(kKnownMs));
}

// One of two ranks on a host dies before the two have connected, while the other waits for it.
TEST(NetDeath, ARankThatDiesBeforeThoseOfItsHostMeetIsNamed) {
  for (const int victim : {0, 1, 2}) {
    const std::string job = unique_name("host");
    std::vector<Child> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.emplace_back(
          [&](int self) -> std::string {
            ConnectOptions options = net_options(self, 3, job, kTimeoutMs);
            options.transport = TransportKind::automatic;
            options.host = self < 2 ? "a" : "b";
            NetMeeting meeting = meet_over_network(options);
            const auto begin = Clock::now();
            if (self == victim) {
              ::kill(::getpid(), SIGKILL);
            }
            ConnectOptions here = options;
            here.rank = meeting.hosts.local(self);
            here.size = static_cast<int>(meeting.hosts.here().size());
            here.job += std::to_string(meeting.hosts.host(self));
            try {
              const auto local =
                  LocalWorld::join(here, RankNames(meeting.hosts.here()), watch_host(meeting));
              connect_hosts(meeting, kTimeoutMs);
              return "connected";
            } catch (const Error& error) {
              return std::to_string(error.context().peer) + " " + milliseconds_since(begin) + " " +
                     error.what();
            }
          },
          rank);
    }
    for (int rank = 0; rank < 3; ++rank) {
      const std::string said = ranks[static_cast<std::size_t>(rank)].result();
      if (rank != victim) {
        std::istringstream words(said);
        int lost = -1;
        int ms = 1 << 30;
        words >> lost >> ms;
        EXPECT_EQ(lost, victim) << "rank " << rank << ": " << said;
        EXPECT_LT(ms, kKnownMs) << "rank " << rank << ": " << said;
      }
    }
  }
}

// Rank 0 dies after sending the table to some ranks. The other ranks leave, and their neighbours,
// which wait for them, must name rank 0.
TEST(NetDeath, ANeighbourThatGoesForRank0IsNotNamed) {
  const std::string job = unique_name("table");
  std::vector<Child> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back(
        [&](int self) -> std::string {
          ConnectOptions options = net_options(self, 3, job, kTimeoutMs);
          options.transport = TransportKind::automatic;
          options.host = self == 0 ? "a" : "b";
          NetMeeting meeting = meet_over_network(options);
          if (self == 0) {
            ::kill(::getpid(), SIGKILL);
          }
          if (self == 2) {
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            return "gone";
          }
          ConnectOptions here = options;
          here.rank = 0;
          here.size = 2;
          here.job += "b";
          try {
            LocalWorld::join(here, RankNames(meeting.hosts.here()), watch_host(meeting));
            return "joined";
          } catch (const Error& error) {
            return error.what();
          }
        },
        rank);
  }
  const std::string said = ranks[1].result();
  EXPECT_EQ(said.find("peer_lost: rank 1 lost rank 0 during the rendezvous"), 0U) << said;
}

std::string meet_and_connect(const ConnectOptions& options) {
  NetMeeting meeting = meet_over_network(options);
  connect_hosts(meeting, kTimeoutMs);
  return "";
}

TEST(NetDeath, WithoutADescriptorARankSaysSo) {
  for (const int starved : {0, 2}) {
    const std::string job = unique_name("starved");
    const auto begin = Clock::now();
    std::vector<Child> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      ranks.emplace_back(
          [&](int self) {
            // A rank that waits for a rank that never came cannot know.
            const int timeout_ms = self == starved ? kTimeoutMs : 3000;
            const ConnectOptions options = net_options(self, 3, job, timeout_ms);
            static_cast<void>(card_of(options));  // UBSan has looked at streams then
            if (self != starved) {
              return meet_and_connect(options);
            }
            const FewDescriptors few(self == 0 ? 2 : 1);  // a listener, and one more
            return meet_and_connect(options);
          },
          rank);
    }
    std::vector<std::string> said;
    for (Child& rank : ranks) {
      said.push_back(rank.result());
    }
    const std::string& own = said[static_cast<std::size_t>(starved)];
    EXPECT_EQ(own.find("resource: "), 0U) << own;
    EXPECT_NE(own.find("(ulimit -n)"), std::string::npos) << own;
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(12));
  }
}

}  // namespace
}  // namespace unisono::comm
