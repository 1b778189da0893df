#include "transport/tcp/socket.h"

#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr int kBacklog = 1024;

void set(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof(value));
}

// On failure returns an empty descriptor and sets errno.
UniqueFd bind_to(const Address& address) {
  UniqueFd socket(::socket(address.family(), kKind, 0));
  if (socket) {
    set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (!address.is_v4()) {
      set(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
    }
    if (::bind(socket.get(), address.get(), address.length()) != 0) {
      const int error = errno;
      socket.reset();
      errno = error;
    }
  }
  return socket;
}

Address name_of(int socket, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  get(socket, reinterpret_cast<sockaddr*>(&name), &length);
  return {reinterpret_cast<const sockaddr*>(&name), length};
}

int local_name(int socket, sockaddr* name, socklen_t* length) {
  return ::getsockname(socket, name, length);
}

int peer_name(int socket, sockaddr* name, socklen_t* length) {
  return ::getpeername(socket, name, length);
}

// Returns zeros if the system has no information.
tcp_info info_of(int socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 ? info : tcp_info{};
}

}  // namespace

UniqueFd listen_at(const Address& address, const PortRange& ports) {
  int error = EADDRINUSE;
  for (int port = ports.first; port <= std::max(ports.first, ports.last); ++port) {
    UniqueFd socket = bind_to(address.with_port(port));
    if (socket && listen_again(socket.get())) {
      return socket;
    }
    error = errno;
    if (error != EADDRINUSE) {
      break;
    }
  }
  if (error == EMFILE || error == ENFILE) {
    throw Error(
        ErrorCode::resource,
        "cannot listen at " + address.host_text() +
            ": this process has no free file descriptor\nraise the limit of open files (ulimit "
            "-n)");
  }
  const std::string range = ports.first == 0            ? "any port"
                            : ports.last <= ports.first ? "port " + std::to_string(ports.first)
                                                        : "ports " + std::to_string(ports.first) +
                                                              "-" + std::to_string(ports.last);
  throw Error(ErrorCode::config,
              "cannot listen at " + address.host_text() + ", " + range + ": " +
                  std::strerror(error) +  // NOLINT(concurrency-mt-unsafe)
                  "\nuse another port range, or another address of this host");
}

UniqueFd reserve(const Address& address) {
  UniqueFd socket = bind_to(address);
  if (socket) {
    set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 0);  // now nobody else can have it
  }
  return socket;
}

bool listen_again(int socket) {
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  return ::listen(socket, kBacklog) == 0;
}

void stop_listening(int socket) {
  ::shutdown(socket, SHUT_RDWR);
}

Address local_address(int socket) {
  return name_of(socket, local_name);
}

Address peer_address(int socket) {
  return name_of(socket, peer_name);
}

UniqueFd begin_connect(const Address& to, const Address* from, const SocketOptions& options) {
  UniqueFd socket(::socket(to.family(), kKind, 0));
  if (!socket) {
    return socket;
  }
  apply(socket.get(), options, to.is_loopback());
  if (from != nullptr) {
    set(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    if (::bind(socket.get(), from->with_port(0).get(), from->length()) != 0) {
      return {};
    }
  }
  if (::connect(socket.get(), to.get(), to.length()) != 0 && errno != EINPROGRESS) {
    return {};
  }
  return socket;
}

int connect_error(int socket) {
  int error = 0;
  socklen_t length = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

bool is_connecting(int socket) {
  pollfd entry{socket, POLLOUT, 0};
  return ::poll(&entry, 1, 0) == 0;
}

bool is_no_answer(int error) {
  return error == EHOSTUNREACH || error == ENETUNREACH || error == EHOSTDOWN || error == ENETDOWN ||
         error == ETIMEDOUT;
}

bool is_dead(int socket) {
  std::byte first{};
  const ssize_t got = ::recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

UniqueFd accept_one(int listener) {
  return UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

bool is_silent(int socket, int silence_ms) {
  const tcp_info info = info_of(socket);
  const bool repeats = info.tcpi_unacked != 0 && info.tcpi_retransmits >= 2;
  const bool asks = info.tcpi_probes >= 3;  // whether the window has opened
  return (repeats || asks) && info.tcpi_last_ack_recv > static_cast<std::uint32_t>(silence_ms);
}

bool is_unheard(int socket, int silence_ms) {
  const tcp_info info = info_of(socket);
  return (info.tcpi_probes != 0 || info.tcpi_retransmits != 0) &&
         info.tcpi_last_ack_recv > static_cast<std::uint32_t>(silence_ms);
}

void apply(int socket, const SocketOptions& options, bool loopback) {
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  if (options.send_buffer > 0) {
    set(socket, SOL_SOCKET, SO_SNDBUF, options.send_buffer);
  }
  if (options.receive_buffer > 0) {
    set(socket, SOL_SOCKET, SO_RCVBUF, options.receive_buffer);
  }
  const std::string congestion =
      options.congestion.empty() && loopback ? "cubic" : options.congestion;
  if (!congestion.empty()) {
    ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
                 static_cast<socklen_t>(congestion.size()));
  }
  // Keepalive probes detect a dead host while nothing is in transit. is_silent() handles all other
  // cases; TCP_USER_TIMEOUT would also end a connection whose reader is busy.
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
}

void keep_though_silent(int socket) {
  constexpr int kMostQuestions = 127;  // the system's limit
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, kMostQuestions);
}

}  // namespace unisono::tcp
