// The relay between the ranks of `unisono run --chaos`: the connections that it serves and refuses.
#include "chaos/relay_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <thread>

#include "transport/tcp/socket.h"

namespace unisono::chaos {
namespace {

tcp::Address loopback() {
  return *tcp::Address::parse("127.0.0.1:0").value;
}

// Returns the data that arrives within two seconds; "" also if the connection was closed.
std::string heard(int socket) {
  pollfd entry{socket, POLLIN, 0};
  char buffer[256];
  const ssize_t got = ::poll(&entry, 1, 2000) == 1 ? ::recv(socket, buffer, sizeof(buffer), 0) : 0;
  return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : "";
}

UniqueFd say(const tcp::Address& to, std::string_view text) {
  UniqueFd socket = tcp::begin_connect(to, nullptr, {});
  pollfd entry{socket.get(), POLLOUT, 0};
  ::poll(&entry, 1, 2000);
  EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
  return socket;
}

UniqueFd accepted(int listener) {
  pollfd entry{listener, POLLIN, 0};
  ::poll(&entry, 1, 2000);
  return tcp::accept_one(listener);
}

TEST(RelayServer, ServesWhoHasTheKey) {
  const UniqueFd rank = tcp::listen_at(loopback());
  RelayServer server(loopback(), {});
  const tcp::RelayRequest request{.key = server.place().key,
                                  .from = 1,
                                  .to = 0,
                                  .stream = 0,
                                  .address = tcp::local_address(rank.get())};
  // The data after the request belongs to the other side, and no byte of it is lost.
  const UniqueFd caller = say(server.place().address, tcp::to_text(request) + "hello");
  const UniqueFd called = accepted(rank.get());
  ASSERT_TRUE(called);
  EXPECT_EQ(heard(called.get()), "hello");
  EXPECT_EQ(::send(called.get(), "yes", 3, 0), 3);
  EXPECT_EQ(heard(caller.get()), "yes");
  server.reset(7);  // the connection of another rank
  EXPECT_EQ(::send(called.get(), "and", 3, 0), 3);
  EXPECT_EQ(heard(caller.get()), "and");
  server.reset(1);
  EXPECT_EQ(heard(called.get()), "");
}

TEST(RelayServer, ServesNobodyElse) {
  const UniqueFd rank = tcp::listen_at(loopback());
  RelayServer server(loopback(), {});
  tcp::RelayRequest request{.key = "0123456789abcdef0123456789abcdef",
                            .from = 1,
                            .to = 0,
                            .stream = 0,
                            .address = tcp::local_address(rank.get())};
  for (const std::string& text :
       {tcp::to_text(request), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(4000, 'x')}) {
    const UniqueFd caller = say(server.place().address, text);
    EXPECT_EQ(heard(caller.get()), "");
  }
  EXPECT_FALSE(tcp::accept_one(rank.get()));
}

TEST(RelayRequest, IsReadAsItIsWritten) {
  const tcp::RelayRequest request{.key = "k",
                                  .from = 12,
                                  .to = 3,
                                  .stream = 1,
                                  .address = *tcp::Address::parse("[fd00::1]:7").value};
  const std::string text = tcp::to_text(request);
  ASSERT_EQ(text, "relay k 12 3 1 [fd00::1]:7\n");
  const auto read = tcp::parse_relay_request(std::string_view(text).substr(0, text.size() - 1));
  ASSERT_TRUE(read);
  EXPECT_EQ(tcp::to_text(*read.value), text);
  for (const char* wrong :
       {"", "relay", "relay k 1 2 0", "relay k 1 2 0 name:5", "relay k -1 2 0 10.0.0.1:5",
        "relay k 1 2 0 10.0.0.1:5 x", "rela k 1 2 0 10.0.0.1:5", "relay k 1 2x 0 10.0.0.1:5"}) {
    EXPECT_FALSE(tcp::parse_relay_request(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace unisono::chaos
