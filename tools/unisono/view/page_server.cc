#include "view/page_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "transport/tcp/socket.h"

namespace unisono::cli {
namespace {

std::string answer(std::string_view status, std::string_view type, std::string_view body,
                   bool with_body) {
  std::string text = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
      status, type, body.size());
  if (with_body) {
    text += body;
  }
  return text;
}

bool must_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

PageServer::PageServer(std::string path, Make make, const tcp::Address& address)
    : path_(std::move(path)),
      make_(std::move(make)),
      listener_(tcp::listen_at(address, {.first = address.port(), .last = address.port()})) {}

tcp::Address PageServer::address() const {
  return tcp::local_address(listener_.get());
}

std::string PageServer::answer_to(const std::string& request) const {
  const std::size_t method = request.find(' ');
  const std::size_t path = request.find(' ', method == std::string::npos ? method : method + 1);
  if (path == std::string::npos) {
    return answer("400 Bad Request", "text/plain", "not HTTP\n", true);
  }
  const std::string_view verb(request.data(), method);
  const std::string_view where(request.data() + method + 1, path - method - 1);
  if (verb != "GET" && verb != "HEAD") {
    return answer("405 Method Not Allowed", "text/plain", "GET or HEAD\n", true);
  }
  if (where != path_) {
    return answer("404 Not Found", "text/plain", fmt::format("the page is at {}\n", path_),
                  verb == "GET");
  }
  const Page page = make_(request);
  return answer("200 OK", page.type, page.text, verb == "GET");
}

bool PageServer::read(Client& client) const {
  std::array<char, 4096> part;
  const ssize_t bytes = ::recv(client.socket.get(), part.data(), part.size(), 0);
  if (bytes <= 0) {
    return bytes < 0 && must_wait();
  }
  if (!client.answer.empty()) {
    return true;  // bytes after the request are not read
  }
  client.request.append(part.data(), static_cast<std::size_t>(bytes));
  if (client.request.find("\r\n\r\n") != std::string::npos) {
    client.answer = answer_to(client.request);
  } else if (client.request.size() > kMostAsked) {
    client.answer = answer("431 Request Header Fields Too Large", "text/plain", "", true);
  }
  return true;
}

bool PageServer::write(Client& client) {
  const ssize_t bytes = ::send(client.socket.get(), client.answer.data() + client.sent,
                               client.answer.size() - client.sent, MSG_NOSIGNAL);
  if (bytes < 0) {
    return must_wait();
  }
  client.sent += static_cast<std::size_t>(bytes);
  return client.sent < client.answer.size();
}

void PageServer::serve(int timeout_ms) {
  std::vector<pollfd> polled;
  for (const Client& client : clients_) {
    const int events = client.answer.empty() ? POLLIN : POLLOUT;
    polled.push_back({client.socket.get(), static_cast<short>(events), 0});
  }
  // Further browsers wait in the queue of the socket.
  polled.push_back({listener_.get(), clients_.size() < kMostClients ? short{POLLIN} : short{0}, 0});
  const auto now = Clock::now();
  for (const Client& client : clients_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(client.until - now).count();
    const int wait = static_cast<int>(std::max<decltype(left)>(left, 0));
    timeout_ms = timeout_ms < 0 ? wait : std::min(timeout_ms, wait);
  }
  if (::poll(polled.data(), polled.size(), timeout_ms) < 0) {
    return;  // interrupted
  }
  const bool has_new = (polled.back().revents & POLLIN) != 0;
  const auto later = Clock::now();
  std::vector<Client> kept;
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    Client& client = clients_[i];
    const short happened = polled[i].revents;
    bool goes_on = later < client.until && (happened & (POLLERR | POLLNVAL)) == 0;
    if (goes_on && client.answer.empty() && (happened & (POLLIN | POLLHUP)) != 0) {
      goes_on = read(client);
    }
    if (goes_on && !client.answer.empty()) {
      goes_on = write(client);
    }
    if (goes_on) {
      kept.push_back(std::move(client));
    } else {
      ::shutdown(client.socket.get(), SHUT_WR);
    }
  }
  clients_ = std::move(kept);
  if (has_new) {
    if (UniqueFd socket = tcp::accept_one(listener_.get())) {
      clients_.push_back({.socket = std::move(socket), .until = later + kPatience});
    }
  }
}

}  // namespace unisono::cli
