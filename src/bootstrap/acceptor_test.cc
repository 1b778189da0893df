// A rank's acceptor admits some peers and refuses others.
#include "bootstrap/acceptor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap/dial.h"
#include "bootstrap/net_mesh.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

Identity identity(int rank, int size, int streams = 1) {
  return {
      .rank = rank, .size = size, .job = "meet", .token = "0123456789abcdef", .streams = streams};
}

class TcpAcceptor : public ::testing::Test {
 protected:
  UniqueFd knock(const std::string& bytes = "") {
    UniqueFd socket = begin_connect(acceptor_.address(), nullptr, {});
    pollfd entry{socket.get(), POLLOUT, 0};
    ::poll(&entry, 1, 1000);
    if (!bytes.empty()) {
      EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes.size()));
    }
    return socket;
  }
  void step_for(int ms) {
    for (const std::int64_t end = clock_ms() + ms; clock_ms() < end;) {
      acceptor_.step(clock_ms());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void expect_join() {
    std::thread joiner([this] {
      meet(joiner_acceptor_, identity(1, 2), {{acceptor_.address()}, {}}, {.timeout_ms = 5000});
    });
    const std::int64_t begin = clock_ms();
    std::vector<Admitted> in;
    while (in.empty() && clock_ms() < begin + 5000) {
      acceptor_.step(clock_ms());
      in = acceptor_.take_admitted();
    }
    joiner.join();
    ASSERT_EQ(in.size(), 1U);
    EXPECT_EQ(in[0].peer.peer, 1);
    EXPECT_LT(clock_ms() - begin, kHandshakeMs);
  }

  Acceptor acceptor_{listen_at(*Address::parse("127.0.0.1").value), identity(0, 2)};
  Acceptor joiner_acceptor_{listen_at(*Address::parse("127.0.0.1").value), identity(1, 2)};
};

TEST_F(TcpAcceptor, IsNotDisturbedByStrangers) {
  std::vector<UniqueFd> strangers;
  strangers.push_back(knock("GET / HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(200, 'a')));
  strangers.push_back(knock(std::string("\x16\x03\x01\x02\x00\x01", 6) + std::string(300, '\0')));
  strangers.push_back(knock(std::string(60'000, 'r')));
  strangers.push_back(knock("x"));
  knock();  // and closes at once
  step_for(20);
  expect_join();
  EXPECT_EQ(acceptor_.refusals().size(), 1U) << "one line for each host";
}

// The acceptor names the rank, which may have died, only if it had the token: a peer without the
// token may claim to be any rank.
TEST_F(TcpAcceptor, NamesARankThatHangsUpAfterItsGreetingIfItHasTheToken) {
  Identity other = identity(1, 2);
  other.token = "another token 00";
  for (const auto& [who, lost] :
       {std::pair(identity(1, 2), std::vector<int>{1}), std::pair(other, std::vector<int>{})}) {
    const Handshake shake = Handshake::dial(who, {.peer = 0, .stream = 0});
    const auto hello = shake.output();
    UniqueFd socket = knock({reinterpret_cast<const char*>(hello.data()), hello.size()});
    for (int i = 0; i < 1000 && acceptor_.pending() == 0; ++i) {
      step_for(1);
    }
    socket.reset();
    for (int i = 0; i < 1000 && acceptor_.pending() != 0; ++i) {
      step_for(1);
    }
    EXPECT_EQ(acceptor_.take_lost(), lost) << who.token;
    EXPECT_TRUE(acceptor_.take_admitted().empty());
  }
}

TEST_F(TcpAcceptor, DropsWhoSaysTooLittleForTooLong) {
  const UniqueFd slow = knock("u");
  std::int64_t now_ms = 1000;
  acceptor_.step(now_ms);
  EXPECT_EQ(acceptor_.pending(), 1U);
  EXPECT_EQ(acceptor_.next_deadline_ms(), now_ms + kHandshakeMs);
  acceptor_.step(now_ms + kHandshakeMs - 1);
  EXPECT_EQ(acceptor_.pending(), 1U);
  acceptor_.step(now_ms + kHandshakeMs);
  EXPECT_EQ(acceptor_.pending(), 0U);
  EXPECT_EQ(acceptor_.refusals().front(), "127.0.0.1: did not authenticate in time");
}

TEST_F(TcpAcceptor, HearsTheNewestWhenManyDawdle) {
  std::vector<UniqueFd> slow;
  for (int i = 0; i < 300; ++i) {
    slow.push_back(knock("u"));
  }
  step_for(20);
  EXPECT_LE(acceptor_.pending(), kMostPending);
  expect_join();
}

// With TLS, a rank completes its side before the acceptor knows it.
TEST_F(TcpAcceptor, KeepsARankThatHasProvedItselfWhenManyCome) {
  Identity root = identity(0, 2);
  Identity one = identity(1, 2);
  root.protection = one.protection = {.tls = true};
  Acceptor acceptor(listen_at(*Address::parse("127.0.0.1").value), root);
  const auto connect = [&] {
    UniqueFd socket = begin_connect(acceptor.address(), nullptr, {});
    pollfd entry{socket.get(), POLLOUT, 0};
    ::poll(&entry, 1, 1000);
    return socket;
  };
  const std::int64_t end_ms = clock_ms() + 5000;
  PendingPeer rank(connect(), Handshake::dial(one, {.peer = 0}), end_ms);
  while (rank.shake().state() != Handshake::State::done && clock_ms() < end_ms) {
    rank.step();
    acceptor.step(clock_ms());
  }
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 300; ++i) {
    strangers.push_back(connect());
    acceptor.step(clock_ms());
  }
  EXPECT_LE(acceptor.pending(), kMostPending + 1);
  std::vector<Admitted> in;
  while (in.empty() && rank.step() && clock_ms() < end_ms) {
    acceptor.step(clock_ms());
    in = acceptor.take_admitted();
  }
  ASSERT_EQ(in.size(), 1U);
  EXPECT_EQ(in[0].peer.peer, 1);
}

TEST_F(TcpAcceptor, LetsARankInOnlyOnce) {
  expect_join();
  Acceptor second(listen_at(*Address::parse("127.0.0.1").value), identity(1, 2));
  std::string error;
  std::thread joiner([&] {
    try {
      meet(second, identity(1, 2), {{acceptor_.address()}, {}}, {.timeout_ms = 1500});
    } catch (const Error& refused) {
      error = refused.what();
    }
  });
  step_for(400);
  joiner.join();
  EXPECT_NE(error.find("rank 0 says: rank 1 is already connected: two processes have this rank"),
            std::string::npos)
      << error;
}

// A dialer that proved its identity, but closed before it got the verdict, is not connected.
TEST_F(TcpAcceptor, LetsARankInAgainThatDiedBeforeItsVerdict) {
  const Identity one = identity(1, 2);
  UniqueFd socket = knock();
  Handshake shake = Handshake::dial(one, {.peer = 0});
  const auto say = [&] {
    const auto out = shake.output();
    ASSERT_EQ(::send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(out.size()));
    shake.sent(out.size());
  };
  say();
  step_for(5);
  std::array<std::byte, kHandshakeBytes> answer{};
  ASSERT_EQ(::recv(socket.get(), answer.data(), answer.size(), 0), kHandshakeBytes);
  shake.feed(answer);
  say();
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  socket.reset();  // the proof is in transit, or lost with the reset
  step_for(5);
  for (const Admitted& admitted : acceptor_.take_admitted()) {
    ASSERT_TRUE(is_dead(admitted.socket.get()));
    acceptor_.let_again(admitted.peer);
  }
  expect_join();
}

TEST(TcpDial, KeepsTheReasonOfItsRefusalWhateverComesAfterIt) {
  Identity other = identity(1, 2);
  other.token = "fedcba9876543210";
  std::optional<Acceptor> acceptor(std::in_place, listen_at(*Address::parse("127.0.0.1").value),
                                   identity(0, 2));
  const std::vector<Address> to{acceptor->address()};
  const MeetOptions options;
  Dial dial(other, to, {.peer = 0}, options);
  const std::int64_t end = clock_ms() + 30'000;
  while (dial.refused_for_ms(clock_ms()) == 0 && clock_ms() < end) {
    acceptor->step(clock_ms());
    dial.step(clock_ms());
  }
  const std::string reason = dial.obstacle();
  EXPECT_NE(reason.find("rank 0 has another job token"), std::string::npos) << reason;
  dial.step(dial.next_ms());  // its next attempt, at which the other side closes
  acceptor.reset();
  while (!dial.nobody_listens() && clock_ms() < end) {
    dial.step(clock_ms());
    EXPECT_EQ(dial.obstacle(), reason);
  }
  EXPECT_TRUE(dial.nobody_listens());
}

TEST_F(TcpAcceptor, AScannerDoesNotHideWhoHasAnotherToken) {
  knock("x");  // and closes
  step_for(5);
  Identity other = identity(1, 2);
  other.token = "fedcba9876543210";
  Acceptor second(listen_at(*Address::parse("127.0.0.1").value), other);
  std::thread joiner([&] {
    EXPECT_THROW(meet(second, other, {{acceptor_.address()}, {}}, {.timeout_ms = 100}), Error);
  });
  step_for(200);
  joiner.join();
  EXPECT_EQ(acceptor_.refusals().front(), "127.0.0.1: rank 1 says: rank 0 has another job token");
}

}  // namespace
}  // namespace unisono::tcp
