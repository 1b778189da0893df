// Two disturbances while ranks connect: strangers that open connections to rank 0 as fast as they
// can, and a rank 0 that closes the connection of a rank that believed it was admitted.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <thread>

#include "bootstrap/acceptor.h"
#include "bootstrap/card.h"
#include "bootstrap/net.h"
#include "bootstrap/net_mesh.h"
#include "bootstrap/net_setup.h"
#include "bootstrap/testing.h"

namespace unisono::comm {
namespace {

using testing::as_threads;
using testing::net_options;
using testing::unique_name;
using Clock = std::chrono::steady_clock;

// Some of the strangers send nothing, some send noise, and some close; none of them waits.
class Flood {
 public:
  Flood(const std::string& address, int threads) : to_(*tcp::Address::parse(address).value) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { run(); });
    }
  }
  ~Flood() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  int knocks() const { return knocks_; }

 private:
  void run() {
    constexpr std::size_t kHeld = 200;
    std::deque<UniqueFd> held;
    while (!stop_) {
      UniqueFd socket = tcp::begin_connect(to_, nullptr, {});
      if (socket && ++knocks_ % 3 == 0) {
        static_cast<void>(::send(socket.get(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
      }
      held.push_back(std::move(socket));
      if (held.size() > kHeld) {
        held.pop_front();
      }
    }
  }

  tcp::Address to_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> knocks_ = 0;
  std::vector<std::thread> threads_;
};

std::string protection_of(const tcp::Channel& stream) {
  return stream.encrypted() ? "TLS" : stream.checksum() ? "CHECKSUM" : "plain";
}

// Protection of the connections; by default they use checksums.
struct Shield {
  const char* name;
  const char* tls;
  bool checksum;
};

class NetFlood : public ::testing::TestWithParam<Shield> {
 protected:
  void SetUp() override {
    ::setenv("UNISONO_TLS", GetParam().tls, 1);  // NOLINT(concurrency-mt-unsafe): no other thread
  }
  void TearDown() override {
    ::unsetenv("UNISONO_TLS");  // NOLINT(concurrency-mt-unsafe): no other thread any more
  }
};

TEST_P(NetFlood, DoesNotKeepRanksFromMeeting) {
  for (int world = 0; world < 3; ++world) {
    const std::string job = unique_name("flood");
    const Flood flood(net_options(0, 4, job).address, 2);
    const auto begin = Clock::now();
    std::vector<tcp::Channels> kept(4);
    for (const std::string& problem : as_threads(4, [&](int rank) -> std::string {
           ConnectOptions options = net_options(rank, 4, job, 20'000);
           options.checksum = GetParam().checksum;
           NetMeeting meeting = meet_over_network(options);
           kept[static_cast<std::size_t>(rank)] = connect_hosts(meeting, 20'000);
           const tcp::Channel& stream = kept[static_cast<std::size_t>(rank)][rank == 0 ? 1 : 0][0];
           return protection_of(stream) == GetParam().name ? "" : protection_of(stream);
         })) {
      EXPECT_EQ(problem, "");
    }
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10)) << flood.knocks() << " knocks";
  }
}

INSTANTIATE_TEST_SUITE_P(Protections, NetFlood,
                         ::testing::Values(Shield{"plain", "0", false}, Shield{"TLS", "1", false},
                                           Shield{"CHECKSUM", "0", true}),
                         [](const auto& shield) { return std::string(shield.param.name); });

// The acceptor of rank 0 alone.
class RootAcceptor {
 public:
  explicit RootAcceptor(const ConnectOptions& options)
      : acceptor_(tcp::listen_at(*tcp::Address::parse(options.address).value,
                                 {.first = tcp::Address::parse(options.address).value->port()}),
                  identity_of(options, "/rendezvous")) {}
  tcp::Channel next() {
    for (const auto end = Clock::now() + std::chrono::seconds(20); Clock::now() < end;) {
      acceptor_.step(tcp::clock_ms());
      for (tcp::Admitted& admitted : acceptor_.take_admitted()) {
        acceptor_.let_again(admitted.peer);
        return std::move(admitted.socket);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  }

 private:
  tcp::Acceptor acceptor_;
};

TEST(NetMeeting, WhoIsHungUpOnBeforeTheTableComesAgain) {
  const std::string job = unique_name("again");
  const auto said = as_threads(2, [&](int rank) -> std::string {
    const ConnectOptions options = net_options(rank, 2, job, 20'000);
    if (rank == 1) {
      return std::to_string(meet_over_network(options).hosts.count()) + " hosts";
    }
    RootAcceptor rendezvous(options);
    rendezvous.next().reset();
    tcp::Channel peer = rendezvous.next();
    TextReader reader;
    while (peer && reader.step(peer, kMostCardBytes) == TextReader::State::going_on) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!peer) {
      return "it did not come again";
    }
    BusinessCard mine = parse_card(reader.text());
    mine.host = "another";
    return send_text(peer, to_table({mine, parse_card(reader.text())}), Deadline::never())
               ? ""
               : "it is gone";
  });
  EXPECT_EQ(said[0], "");
  EXPECT_EQ(said[1], "2 hosts");
}

TEST(NetMeeting, WhoGivesUpALateAnswerIsAwaitedAgain) {
  const std::string job = unique_name("late");
  const auto said = as_threads(2, [&](int rank) -> std::string {
    const ConnectOptions options = net_options(rank, 2, job, 20'000);
    if (rank == 1) {  // in, and out without a card
      tcp::Acceptor acceptor(std::vector<UniqueFd>{}, {});
      tcp::meet(acceptor, identity_of(options, "/rendezvous"),
                {{*tcp::Address::parse(options.address).value}, {}}, {.timeout_ms = 20'000});
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return std::to_string(meet_over_network(options).hosts.count()) + " hosts";
  });
  EXPECT_EQ(said[0], "2 hosts");
  EXPECT_EQ(said[1], "2 hosts");
}

}  // namespace
}  // namespace unisono::comm
