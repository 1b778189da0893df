// Connected sockets on the loopback device, for tests.
#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/tcp/channel.h"
#include "transport/tcp/protection.h"
#include "transport/tcp/socket.h"

namespace unisono::tcp {

struct SocketPair {
  UniqueFd a;
  UniqueFd b;
};

inline SocketPair socket_pair(const std::string& host = "127.0.0.1",
                              const SocketOptions& options = {}) {
  const UniqueFd listener = listen_at(*Address::parse(host).value);
  SocketPair pair;
  pair.a = begin_connect(local_address(listener.get()), nullptr, options);
  pollfd entry{listener.get(), POLLIN, 0};
  ::poll(&entry, 1, 5000);
  pair.b = accept_one(listener.get());
  apply(pair.b.get(), options, true);
  return pair;
}

inline void shake(Tls& a, Tls& b) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (bool done = false; !done && std::chrono::steady_clock::now() < end;) {
    const Tls::State here = a.shake();
    done = b.shake() == Tls::State::done && here == Tls::State::done;
    std::this_thread::yield();
  }
}

// Returns both ends in the state in which the handshake leaves them.
inline std::pair<Channel, Channel> protect(SocketPair pair, const Protection& protection) {
  std::unique_ptr<Tls> a;
  std::unique_ptr<Tls> b;
  if (protection.tls) {
    Digest key{};
    fill_random(key);
    a = std::make_unique<Tls>(pair.a.get(), key, false);
    b = std::make_unique<Tls>(pair.b.get(), key, true);
    shake(*a, *b);
  }
  return {Channel(std::move(pair.a), std::move(a), protection.checksum),
          Channel(std::move(pair.b), std::move(b), protection.checksum)};
}

// The sockets of a world whose ranks are all connected: [rank][peer][stream].
using Mesh = std::vector<Channels>;
inline Mesh socket_mesh(int ranks, int streams, const std::string& host = "127.0.0.1",
                        const SocketOptions& options = {}, const Protection& protection = {}) {
  const auto n = static_cast<std::size_t>(ranks);
  Mesh mesh(n);
  for (auto& row : mesh) {
    row.resize(n);
  }
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      for (int i = 0; i < streams; ++i) {
        auto [here, there] = protect(socket_pair(host, options), protection);
        mesh[a][b].push_back(std::move(here));
        mesh[b][a].push_back(std::move(there));
      }
    }
  }
  return mesh;
}

}  // namespace unisono::tcp
