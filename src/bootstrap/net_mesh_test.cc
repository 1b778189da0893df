// Ranks that connect over the loopback device, and strangers at the acceptor.
#include "bootstrap/net_mesh.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

Identity identity(int rank, int size, int streams = 1) {
  return {
      .rank = rank, .size = size, .job = "meet", .token = "0123456789abcdef", .streams = streams};
}

using Streams = Channels;

struct Party {
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  std::vector<std::vector<Address>> addresses;
  std::vector<Identity> identities;

  Party(int size, const std::string& host, int streams = 1) {
    for (int rank = 0; rank < size; ++rank) {
      identities.push_back(identity(rank, size, streams));
      acceptors.push_back(
          std::make_unique<Acceptor>(listen_at(*Address::parse(host).value), identities.back()));
      addresses.push_back({acceptors.back()->address()});
    }
  }
  // Returns what each rank got, or its error.
  std::vector<std::string> meet_all(std::vector<Streams>& streams, const MeetOptions& options) {
    std::vector<std::string> errors(acceptors.size());
    streams.resize(acceptors.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < acceptors.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          streams[rank] = meet(*acceptors[rank], identities[rank], addresses, options);
        } catch (const Error& error) {
          errors[rank] = error.what();
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    return errors;
  }
};

void expect_connected(const std::string& host, int size, int streams) {
  Party party(size, host, streams);
  std::vector<Streams> got;
  for (const std::string& error : party.meet_all(got, {})) {
    ASSERT_EQ(error, "");
  }
  for (int a = 0; a < size; ++a) {
    for (int b = 0; b < size; ++b) {
      const auto& mine = got[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
      ASSERT_EQ(mine.size(), a == b ? 0U : static_cast<std::size_t>(streams));
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const auto& theirs = got[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)];
        EXPECT_EQ(peer_address(mine[i].get()).text(), local_address(theirs[i].get()).text());
      }
    }
  }
}

TEST(TcpMeet, ConnectsAllWithAll) {
  expect_connected("127.0.0.1", 5, 1);
}

TEST(TcpMeet, ConnectsSeveralStreamsOverIpv6) {
  expect_connected("::1", 3, 3);
}

TEST(TcpMeet, NamesTheRankWithAnotherToken) {
  Party party(3, "127.0.0.1");
  party.identities[2].token = "fedcba9876543210";
  std::vector<Streams> got;
  const auto errors = party.meet_all(got, {.timeout_ms = 2000});
  EXPECT_NE(errors[2].find("rank 0 at " + party.addresses[0].front().text() +
                           ": rank 0 has another job token"),
            std::string::npos)
      << errors[2];
  // Rank 1 gives up at about the same time, perhaps a moment earlier.
  EXPECT_TRUE(errors[0].find("connected to 1 of 2 ranks") != std::string::npos ||
              errors[0].find("it was connected, then closed the connection") != std::string::npos)
      << errors[0];
  EXPECT_NE(errors[0].find("turned away: 127.0.0.1: rank 2 says: rank 0 has another job token"),
            std::string::npos)
      << errors[0];
}

TEST(TcpMeet, NamesWhoDoesNotListen) {
  Party party(2, "127.0.0.1");
  party.acceptors[0].reset();
  try {
    meet(*party.acceptors[1], party.identities[1], party.addresses, {.timeout_ms = 100});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::connection);
    EXPECT_NE(std::string(error.what())
                  .find("rank 0 at " + party.addresses[0].front().text() + ": Connection refused"),
              std::string::npos)
        << error.what();
  }
}

// A rank's first process dies after it was admitted, while rank 0 still waits for other ranks.
TEST(TcpMeet, TakesARankAgainThatDiedWhileOthersWereAwaited) {
  Party party(3, "127.0.0.1");
  std::vector<Streams> got(3);
  std::vector<std::string> errors(3);
  const auto join = [&](std::size_t rank, const Identity& self, Streams& streams) {
    return std::thread([&, rank] {
      try {
        streams = meet(*party.acceptors[rank], self, party.addresses, {.timeout_ms = 10'000});
      } catch (const Error& error) {
        errors[rank] = error.what();
      }
    });
  };
  std::thread zero = join(0, party.identities[0], got[0]);
  {
    // This process connects only to rank 0, and then disappears.
    Acceptor early(listen_at(*Address::parse("127.0.0.1").value), party.identities[1]);
    meet(early, party.identities[1], {party.addresses[0], {}, {}});
  }
  std::thread one = join(1, party.identities[1], got[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::thread two = join(2, party.identities[2], got[2]);
  zero.join();
  one.join();
  two.join();
  EXPECT_EQ(errors, std::vector<std::string>(3));
  ASSERT_EQ(got[0].size(), 3U);
  ASSERT_EQ(got[1].size(), 3U);
  EXPECT_EQ(peer_address(got[0][1][0].get()).text(), local_address(got[1][0][0].get()).text());
}

Address listen_and_close() {
  return local_address(listen_at(*Address::parse("127.0.0.1").value).get());
}

// At this address nothing answers, not even with a refusal.
TEST(TcpMeet, NamesAnAddressThatNothingAnswersAt) {
  // If the queue is full, the system leaves further requests waiting.
  const UniqueFd full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Address any = Address::parse("127.0.0.1").value->with_port(0);
  ASSERT_EQ(::bind(full.get(), any.get(), any.length()), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  std::vector<UniqueFd> queue;
  for (int i = 0; i < 3; ++i) {
    queue.push_back(begin_connect(local_address(full.get()), nullptr, {}));
  }
  Acceptor acceptor(listen_at(*Address::parse("127.0.0.1").value), identity(1, 2));
  const std::clock_t cpu = std::clock();
  try {
    meet(acceptor, identity(1, 2), {{local_address(full.get())}, {}}, {.timeout_ms = 4500});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("nothing answers there"), std::string::npos)
        << error.what();
  }
  EXPECT_LT(std::clock() - cpu, CLOCKS_PER_SEC) << "it does not spin meanwhile";
}

TEST(TcpMeet, RefusesOtherHostsWithoutAToken) {
  Identity self = identity(1, 2);
  self.token = "";
  Acceptor acceptor(listen_at(*Address::parse("127.0.0.1").value), self);
  try {
    meet(acceptor, self, {{*Address::parse("192.0.2.1:5").value}, {}}, {.timeout_ms = 10});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_NE(std::string(error.what()).find("set UNISONO_TOKEN"), std::string::npos);
  }
}

TEST(TcpMeet, SaysSoWhenNoDescriptorIsFree) {
  Acceptor acceptor(listen_at(*Address::parse("127.0.0.1").value), identity(0, 2));
  const UniqueFd knock = begin_connect(acceptor.address(), nullptr, {});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::clock_t cpu = std::clock();
  for (std::int64_t now_ms = 0; now_ms < 500; now_ms += 10) {
    acceptor.step(now_ms);
    std::vector<pollfd> entries;
    acceptor.add_events(entries);
    EXPECT_TRUE(entries.empty());
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(std::clock() - cpu, CLOCKS_PER_SEC / 4);
  ASSERT_EQ(acceptor.refusals().size(), 1U);
  EXPECT_EQ(acceptor.refusals().front(), "this process has no free file descriptor (ulimit -n)");
  acceptor.step(1000);
  EXPECT_EQ(acceptor.pending(), 1U) << "and hears who waits when one is";
}

TEST(TcpMeet, TriesAllAddressesOfARank) {
  Party party(2, "127.0.0.1");
  const Address nobody = listen_and_close();
  party.addresses[0].insert(party.addresses[0].begin(), nobody);
  std::vector<Streams> got;
  for (const std::string& error : party.meet_all(got, {})) {
    EXPECT_EQ(error, "");
  }
}

TEST(TcpMeet, EncryptsAndCarriesChecksums) {
  Party party(3, "127.0.0.1", 2);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    party.identities[rank].protection = {.tls = true, .checksum = true};
    party.acceptors[rank] = std::make_unique<Acceptor>(
        listen_at(*Address::parse("127.0.0.1").value), party.identities[rank]);
    party.addresses[rank] = party.acceptors[rank]->addresses();
  }
  std::vector<Streams> got;
  for (const std::string& error : party.meet_all(got, {})) {
    ASSERT_EQ(error, "");
  }
  for (std::size_t stream = 0; stream < 2; ++stream) {
    EXPECT_TRUE(got[0][2][stream].encrypted());
    EXPECT_TRUE(got[0][2][stream].checksum());
    EXPECT_TRUE(got[2][0][stream].encrypted());
  }
}

TEST(TcpMeet, NamesBothSidesThatProtectInDifferentWays) {
  Party party(2, "127.0.0.1");
  party.identities[1].protection = {.tls = true};
  std::vector<Streams> got;
  const auto errors = party.meet_all(got, {.timeout_ms = 2000});
  EXPECT_NE(errors[1].find("rank 0 has UNISONO_TLS=0 and UNISONO_CHECKSUM=0, rank 1 has "
                           "UNISONO_TLS=1 and UNISONO_CHECKSUM=0: all ranks must have the same"),
            std::string::npos)
      << errors[1];
  EXPECT_NE(errors[0].find("rank 1 has UNISONO_TLS=1 and UNISONO_CHECKSUM=0, rank 0 has "
                           "UNISONO_TLS=0 and UNISONO_CHECKSUM=0"),
            std::string::npos)
      << errors[0];
}

TEST(TcpMeet, NamesWhoShowsACertificateAndWhoDoesNot) {
  Party party(2, "127.0.0.1");
  party.identities[0].protection = {.tls = true};
  party.acceptors[0] = std::make_unique<Acceptor>(listen_at(*Address::parse("127.0.0.1").value),
                                                  party.identities[0]);
  party.addresses[0] = party.acceptors[0]->addresses();
  party.identities[1].protection = {.tls = true, .certificates = true};
  std::vector<Streams> got;
  const auto errors = party.meet_all(got, {.timeout_ms = 2000});
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("rank 1 has UNISONO_TLS_IDENTITY, rank 0 does not: all ranks must show a "
                         "certificate, or none"),
              std::string::npos)
        << error;
  }
}

TEST(TcpMeet, NamesBothSidesThatWantDifferentNetworks) {
  Party party(2, "127.0.0.1");
  party.identities[1].protection = {.network = 1};
  std::vector<Streams> got;
  const auto errors = party.meet_all(got, {.timeout_ms = 2000});
  EXPECT_NE(errors[1].find("rank 0 has UNISONO_NETWORK=tcp, rank 1 has UNISONO_NETWORK=ucx: all "
                           "ranks must have the same"),
            std::string::npos)
      << errors[1];
  EXPECT_NE(errors[0].find("rank 1 has UNISONO_NETWORK=ucx, rank 0 has UNISONO_NETWORK=tcp"),
            std::string::npos)
      << errors[0];
}

TEST(TcpMeet, EncryptsNothingWithoutAToken) {
  Identity self = identity(1, 2);
  self.token = "";
  self.protection = {.tls = true};
  Acceptor acceptor(listen_at(*Address::parse("127.0.0.1").value), self);
  EXPECT_THROW(meet(acceptor, self, {{acceptor.address()}, {}}, {.timeout_ms = 10}), Error);
}

TEST(TcpListen, TakesAFreePortOfItsRangeOrSaysThatThereIsNone) {
  const Address host = *Address::parse("127.0.0.1").value;
  const UniqueFd first = listen_at(host);
  const int port = local_address(first.get()).port();
  const UniqueFd second = listen_at(host, {.first = port, .last = port + 20});
  EXPECT_GT(local_address(second.get()).port(), port);
  try {
    listen_at(host, {.first = port, .last = port});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "config: cannot listen at 127.0.0.1, port " + std::to_string(port) +
            ": Address already in use\nuse another port range, or another address of this host");
  }
}

}  // namespace
}  // namespace unisono::tcp
