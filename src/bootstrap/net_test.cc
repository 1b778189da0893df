// Ranks that connect over the network: here over the loopback device, each rank as if on its own
// host.
#include "bootstrap/net.h"
#include "bootstrap/net_setup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "bootstrap/addresses.h"
#include "bootstrap/card.h"
#include "bootstrap/local_world.h"
#include "bootstrap/net_mesh.h"
#include "bootstrap/testing.h"
#include "bootstrap/wire.h"

namespace unisono::comm {
namespace {

using testing::as_threads;
using testing::unique_name;

using testing::net_options;

// Returns how many hosts a rank found, and the number of its connections. Moves the connections to
// `kept`: if a rank closed them while others still connect, the others would notice.
std::string meet(const ConnectOptions& options, tcp::Channels& kept) {
  NetMeeting meeting = meet_over_network(options);
  const int hosts = meeting.hosts.count();
  kept = connect_hosts(meeting, options.connect_timeout_ms);
  std::size_t connected = 0;
  for (const auto& peer : kept) {
    connected += peer.size();
  }
  return std::to_string(hosts) + " hosts, " + std::to_string(connected) + " connections";
}

std::string meet(const ConnectOptions& options) {
  tcp::Channels none;
  return meet(options, none);
}

std::string refusal_of_address(const std::string& address) {
  try {
    find_target(address);
  } catch (const Error& error) {
    return std::string(error.message());
  }
  return {};
}

TEST(FindTarget, WantsTheInterfaceOfALinkLocalAddress) {
  EXPECT_NE(refusal_of_address("[fe80::1]:29600").find("has no interface"), std::string::npos);
  EXPECT_NE(refusal_of_address("[fe80::1%absent0]:29600").find("no interface \"absent0\""),
            std::string::npos);
  EXPECT_EQ(refusal_of_address("[fe80::1%lo]:29600"), "");
  EXPECT_EQ(refusal_of_address("[fd00::1]:29600"), "");
}

// An interface number is valid only on its own host.
TEST(FindTarget, ACardNamesNoInterface) {
  BusinessCard card;
  card.host = "a";
  card.machine = "b";
  card.addresses = {*tcp::Address::parse("[fe80::1%lo]:29600").value};
  EXPECT_EQ(parse_card(to_text(card)).addresses.front().text(), "[fe80::1]:29600");
}

TEST(NetMeeting, ConnectsAllRanks) {
  std::vector<tcp::Channels> kept(5);
  const std::string job = unique_name("net");
  for (const std::string& found : as_threads(5, [&](int rank) {
         return meet(net_options(rank, 5, job), kept[static_cast<std::size_t>(rank)]);
       })) {
    EXPECT_EQ(found, "5 hosts, 4 connections");
  }
}

// This includes a new rank in a grown job that is alone on its host.
TEST(NetMeeting, AllHearHowManyWorldsThereWere) {
  const std::string job = unique_name("net");
  for (const std::string& found : as_threads(3, [&](int rank) {
         const int known = rank == 1 ? 3 : 0;
         return std::to_string(meet_over_network(net_options(rank, 3, job), known).worlds);
       })) {
    EXPECT_EQ(found, "3");
  }
}

// Three ranks on one host, the others on the second.
ConnectOptions of_two_hosts(ConnectOptions options) {
  options.transport = TransportKind::automatic;
  options.host = options.rank < 3 ? "a" : "b";
  return options;
}

TEST(NetMeeting, RanksOfOneHostNeedNoConnections) {
  std::vector<tcp::Channels> kept(4);
  const std::string job = unique_name("net");
  const auto found = as_threads(4, [&](int rank) {
    return meet(of_two_hosts(net_options(rank, 4, job)), kept[static_cast<std::size_t>(rank)]);
  });
  EXPECT_EQ(found[0], "2 hosts, 1 connections");
  EXPECT_EQ(found[3], "2 hosts, 3 connections");
}

TEST(NetMeeting, AllHearWhoIsMissing) {
  const std::string job = unique_name("net");
  const auto said = as_threads(5, [&](int rank) {
    return rank == 2 || rank == 4 ? "" : meet(net_options(rank, 5, job, rank == 0 ? 4000 : 20'000));
  });
  for (const int rank : {0, 1, 3}) {
    const std::string& text = said[static_cast<std::size_t>(rank)];
    EXPECT_EQ(text.find("connection: joined 3 of 5; missing ranks 2, 4 after "), 0U) << text;
    EXPECT_NE(text.find("\ncheck that these ranks run"), std::string::npos) << text;
  }
}

TEST(NetMeeting, NamesRankZeroWhenItIsNotThere) {
  const std::string text =
      testing::run_one([&](int) { return meet(net_options(1, 2, unique_name("net"), 200)); }, 1);
  EXPECT_NE(text.find("rank 0 at 127.3."), std::string::npos) << text;
  EXPECT_NE(text.find("Connection refused"), std::string::npos) << text;
}

TEST(NetMeeting, AnotherTokenIsTurnedAwayAndNamed) {
  const std::string job = unique_name("net");
  const auto said = as_threads(2, [&](int rank) {
    ConnectOptions options = net_options(rank, 2, job, rank == 0 ? 4000 : 3000);
    options.token += rank == 0 ? "a" : "b";
    return meet(options);
  });
  EXPECT_NE(said[0].find("joined 1 of 2; missing rank 1"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("turned away: 127.0.0.1: "), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("\nthe refusal says what differs"), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("rank 0 has another job token"), std::string::npos) << said[1];
}

TEST(NetMeeting, NeedsATokenAndAnAddressOfTheHostOfRankZero) {
  ConnectOptions options = net_options(0, 2, unique_name("net"), 200);
  options.token.clear();
  EXPECT_NE(testing::run_one([&](int) { return meet(options); }, 0).find("needs a job token"),
            std::string::npos);
  options.token = testing::kToken;
  options.address = "192.0.2.7:29602";  // a network reserved for documentation
  EXPECT_NE(
      testing::run_one([&](int) { return meet(options); }, 0)
          .find("rank 0 must listen at 192.0.2.7:29602, which is not an address of this host"),
      std::string::npos);
}

TEST(NetMeeting, SomebodyWhoLeavesEarlyIsNamed) {
  const std::string job = unique_name("net");
  const auto said = as_threads(3, [&](int rank) -> std::string {
    const ConnectOptions options = net_options(rank, 3, job);
    if (rank != 2) {
      return rank == 0 ? meet(options) : "";
    }
    // Connects, sends no card, and leaves.
    tcp::Acceptor acceptor(tcp::listen_at(*tcp::Address::parse("127.0.0.1").value), {});
    tcp::meet(acceptor, identity_of(options, "/rendezvous"),
              {{*tcp::Address::parse(options.address).value}, {}, {}}, {.timeout_ms = 60'000});
    return "";
  });
  EXPECT_EQ(
      said[0],
      "connection: rank 2 closed its connection during the rendezvous\nlook at its last output");
}

// Another version or a stranger may send such a failure.
TEST(NetMeeting, AFailureOfAKindThatIsUnknownIsOneOfTheConnection) {
  const std::string job = unique_name("net");
  const auto said = as_threads(2, [&](int rank) -> std::string {
    const ConnectOptions options = net_options(rank, 2, job);
    if (rank == 1) {
      return meet(options);
    }
    const tcp::Address at = *tcp::Address::parse(options.address).value;
    tcp::Acceptor rendezvous(tcp::listen_at(at, {.first = at.port(), .last = 0}),
                             identity_of(options, "/rendezvous"));
    std::vector<tcp::Admitted> admitted;
    for (int ms = 0; ms < 60'000 && admitted.empty(); ++ms) {
      ::usleep(1000);
      rendezvous.step(ms);
      admitted = rendezvous.take_admitted();
    }
    const bool sent = !admitted.empty() && send_text(admitted.front().socket, "E\x7fno\nnever",
                                                     Deadline::of_timeout(60'000));
    return sent ? "" : "nobody came";
  });
  EXPECT_EQ(said[0], "");
  EXPECT_EQ(said[1], "connection: no\nnever");
}

// A key-value store that the ranks share.
class Store {
 public:
  explicit Store(int size) : texts_(static_cast<std::size_t>(size)) {}
  std::vector<std::string> exchange(int rank, const std::string& mine) {
    std::unique_lock lock(mutex_);
    texts_[static_cast<std::size_t>(rank)] = mine;
    all_there_.notify_all();
    all_there_.wait(lock, [&] {
      return std::none_of(texts_.begin(), texts_.end(),
                          [](const auto& text) { return text.empty(); });
    });
    return texts_;
  }

 private:
  std::mutex mutex_;  // guards texts_
  std::condition_variable all_there_;
  std::vector<std::string> texts_;
};

ConnectOptions exchanging(int rank, int size, const std::string& job, Store& store) {
  ConnectOptions options = net_options(rank, size, job);
  options.address.clear();
  options.bootstrap = [rank, &store](const std::string& mine) {
    return store.exchange(rank, mine);
  };
  return options;
}

TEST(NetMeeting, RanksThatCanTalkAlreadyNeedNoLobby) {
  std::vector<tcp::Channels> kept(4);
  Store store(4);
  const std::string job = unique_name("net");
  const auto found = as_threads(4, [&](int rank) {
    return meet(of_two_hosts(exchanging(rank, 4, job, store)),
                kept[static_cast<std::size_t>(rank)]);
  });
  EXPECT_EQ(found[0], "2 hosts, 1 connections");
  EXPECT_EQ(found[3], "2 hosts, 3 connections");
}

TEST(NetMeeting, AnAddressOnlySaysWhichOfItsOwnARankTells) {
  std::vector<tcp::Channels> kept(2);
  Store store(2);
  const std::string job = unique_name("net");
  const auto found = as_threads(2, [&](int rank) {
    ConnectOptions options = exchanging(rank, 2, job, store);
    options.address = "127.0.0.1:1";  // nobody listens there
    return meet(options, kept[static_cast<std::size_t>(rank)]);
  });
  EXPECT_EQ(found[0], "2 hosts, 1 connections");
  EXPECT_NE(store.exchange(0, "seen")[1].find("\n127.0.0.1:"), std::string::npos);
}

TEST(NetMeeting, WhatAnExchangeReturnsIsChecked) {
  Store unused(2);
  ConnectOptions options = exchanging(0, 2, unique_name("net"), unused);
  options.bootstrap = [](const std::string& mine) { return std::vector{mine}; };
  EXPECT_NE(testing::run_one([&](int) { return meet(options); }, 0)
                .find("ConnectOptions::bootstrap returned 1 texts for 2 ranks"),
            std::string::npos);
  options.bootstrap = [](const std::string& mine) { return std::vector{mine, std::string("x")}; };
  EXPECT_NE(testing::run_one([&](int) { return meet(options); }, 0).find("card cannot be read"),
            std::string::npos);
}

TEST(BusinessCard, AnAddressThatOnlyItsOwnHostReachesIsNamed) {
  const auto card = [](const char* host, const char* address) {
    return BusinessCard{.host = host,
                        .machine = host,
                        .cpus = {0},
                        .addresses = {*tcp::Address::parse(address).value}};
  };
  const BusinessCard lonely = card("a", "127.0.0.1:5");
  EXPECT_NE(find_unreachable({lonely, card("b", "10.0.0.2:6")})
                .find("rank 0 can be reached at 127.0.0.1 only"),
            std::string::npos);
  EXPECT_EQ(find_unreachable({lonely, card("b", "127.0.0.1:6")}), "");
  EXPECT_EQ(find_unreachable({card("a", "10.0.0.1:5"), card("b", "10.0.0.2:6")}), "");
}

TEST(Target, NeedsAPort) {
  EXPECT_EQ(find_target("[fd00::1]:29600").addresses.front().text(), "[fd00::1]:29600");
  EXPECT_TRUE(find_target("localhost:1").addresses.front().is_loopback());
  for (const char* text : {"10.0.0.1", "10.0.0.1:0", "node0", "node0:", ""}) {
    EXPECT_THROW(find_target(text), Error) << text;
  }
  EXPECT_THROW(find_target("no such host.invalid:29600"), Error);
}

TEST(Ports, AreOneOrARange) {
  const auto ports = [](const char* text) {
    ConnectOptions options;
    options.ports = text;
    return ports_of(options);
  };
  EXPECT_EQ(ports("").first, 0);
  EXPECT_EQ(ports("20000").first, 20000);
  EXPECT_EQ(ports("20000-20010").last, 20010);
  for (const char* text : {"0", "x", "20000-", "20010-20000", "1-65536", "1-2-3", "-5"}) {
    EXPECT_THROW(ports(text), Error) << text;
  }
}

TEST(BusinessCard, IsReadBackAndCheckedOnTheWay) {
  const BusinessCard card{.host = "a/1",
                          .machine = "a",
                          .cpus = {0, 5},
                          .worlds = 3,
                          .addresses = {*tcp::Address::parse("10.0.0.1:5").value,
                                        *tcp::Address::parse("[fd00::1]:6").value}};
  const BusinessCard back = parse_card(to_text(card));
  EXPECT_EQ(back.host, card.host);
  EXPECT_EQ(back.machine, card.machine);
  EXPECT_EQ(back.cpus, card.cpus);
  EXPECT_EQ(back.worlds, card.worlds);
  ASSERT_EQ(back.addresses.size(), 2U);
  EXPECT_EQ(back.addresses[1].text(), "[fd00::1]:6");
  EXPECT_EQ(parse_table(to_table({card, card}), 2).size(), 2U);
  for (const char* text :
       {"", "host", "host\n", "\n10.0.0.1:5\n", "host\n10.0.0.1:5", "host\nnowhere\n",
        "host\na\n0 \nx\n10.0.0.1:5\n", "host\na\n0 \n10.0.0.1:5\n",
        "host\na\n0 \n1000001\n10.0.0.1:5\n", "host\na\n0 \n2147483647\n10.0.0.1:5\n"}) {
    EXPECT_THROW(parse_card(text), Error) << text;
  }
  const std::string table = to_table({card});
  EXPECT_THROW(parse_table(table, 2), Error);
  EXPECT_THROW(parse_table(to_table({card, card}), 1), Error);
  EXPECT_THROW(parse_table("X" + table.substr(1), 1), Error);
}

}  // namespace
}  // namespace unisono::comm
