#include "store_host.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "common/signals.h"

namespace unisono_torch {
namespace {

constexpr int kConnectMs = 1'000;

int connect_to(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return -1;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    const int made =
        socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, one->ai_protocol);
    if (made < 0) {
      continue;
    }
    int error = connect(made, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    pollfd ready{.fd = made, .events = POLLOUT, .revents = 0};
    socklen_t size = sizeof(error);
    if (error == 0 || (error == EINPROGRESS && poll(&ready, 1, kConnectMs) == 1 &&
                       getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)) {
      return made;
    }
    close(made);
  }
  return -1;
}

std::string of_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

StoreHost::StoreHost(const c10d::Store& store, int rank) {
  const auto* prefixed = dynamic_cast<const c10d::PrefixStore*>(&store);
  const c10d::Store* inner = &store;
  c10::intrusive_ptr<c10d::Store> held;
  if (prefixed != nullptr) {
    held = const_cast<c10d::PrefixStore*>(prefixed)->getUnderlyingNonPrefixStore();
    inner = held.get();
  }
  const auto* tcp = dynamic_cast<const c10d::TCPStore*>(inner);
  if (tcp == nullptr || rank == 0 || of_environment("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    return;
  }
  const std::string port = std::to_string(tcp->getPort());
  if (of_environment("MASTER_PORT") == port) {
    socket_ = connect_to(tcp->getHost(), port);
  }
}

StoreHost::~StoreHost() {
  if (socket_ >= 0) {
    close(socket_);
  }
}

void StoreHost::wait_for_end(std::chrono::milliseconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  pollfd ended{.fd = socket_, .events = POLLIN | POLLRDHUP, .revents = 0};
  while (socket_ >= 0 &&
         poll(&ended, 1, static_cast<int>(unisono_signals::kAskEvery.count())) == 0 &&
         std::chrono::steady_clock::now() < end && !unisono_signals::is_interrupted()) {
  }
}

}  // namespace unisono_torch
