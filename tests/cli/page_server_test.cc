#include "view/page_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <string_view>

namespace unisono::cli {
namespace {

const tcp::Address kAnyPort = tcp::Address::parse("127.0.0.1").value.value();

PageServer::Make always(const std::string& page) {
  return [page](std::string_view) { return Page{.text = page}; };
}

struct Browser {
  UniqueFd socket{::socket(AF_INET, SOCK_STREAM, 0)};
  explicit Browser(const PageServer& server) {
    const tcp::Address to = server.address();
    EXPECT_EQ(::connect(socket.get(), to.get(), to.length()), 0);
  }
  void ask(const std::string& text) const {
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Reads everything that the server sends until it closes.
  std::string answer(PageServer& server) const {
    std::string all;
    std::array<char, 65536> part;
    for (;;) {
      const ssize_t bytes = ::recv(socket.get(), part.data(), part.size(), MSG_DONTWAIT);
      if (bytes == 0) {
        return all;
      }
      if (bytes > 0) {
        all.append(part.data(), static_cast<std::size_t>(bytes));
      } else {
        server.serve(10);
      }
    }
  }
};

TEST(PageServer, GivesThePageToThoseWhoAskForIt) {
  const std::string page(5'000'000, 'x');  // more than a socket buffer
  PageServer server("/", always(page), kAnyPort);
  const Browser browser(server);
  browser.ask("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
  const std::string answer = browser.answer(server);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(answer.find("Content-Length: 5000000\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n" + page));
  EXPECT_EQ(server.connections(), 0U);
}

TEST(PageServer, OneWhoDoesNotAskKeepsNobodyWaiting) {
  PageServer server("/", always("page"), kAnyPort);
  const Browser idle(server);
  const Browser slow(server);
  slow.ask("GET / HT");
  const Browser browser(server);
  browser.ask("HEAD / HTTP/1.1\r\n\r\n");
  const std::string answer = browser.answer(server);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
  slow.ask("TP/1.1\r\n\r\n");
  EXPECT_TRUE(slow.answer(server).ends_with("\r\n\r\npage"));
}

TEST(PageServer, MakesAPageForEachRequest) {
  int made = 0;
  PageServer server(
      "/metrics",
      [&made](std::string_view request) {
        EXPECT_NE(request.find("\r\nAccept: text/plain\r\n"), std::string_view::npos);
        return Page{.type = "text/plain; version=7", .text = std::to_string(++made)};
      },
      kAnyPort);
  for (const std::string expected : {"1", "2"}) {
    const Browser browser(server);
    browser.ask("GET /metrics HTTP/1.1\r\nAccept: text/plain\r\n\r\n");
    const std::string answer = browser.answer(server);
    EXPECT_NE(answer.find("\r\nContent-Type: text/plain; version=7; charset=utf-8\r\n"),
              std::string::npos);
    EXPECT_TRUE(answer.ends_with("\r\n\r\n" + expected)) << answer;
  }
}

TEST(PageServer, RefusesAllElse) {
  PageServer server("/", always("page"), kAnyPort);
  const auto said = [&](const std::string& text) {
    const Browser browser(server);
    browser.ask(text);
    const std::string answer = browser.answer(server);
    return answer.substr(0, answer.find("\r\n"));
  };
  EXPECT_EQ(said("GET /other HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(said("POST / HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_EQ(said("nonsense\r\n\r\n"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(said("GET  \r\n\r\n"), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(said(std::string(20'000, 'x')), "HTTP/1.1 431 Request Header Fields Too Large");
  EXPECT_EQ(server.connections(), 0U);
}

}  // namespace
}  // namespace unisono::cli
