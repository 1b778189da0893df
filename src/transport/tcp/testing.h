// Connected sockets on the loopback device, for tests.
#pragma once

#include <poll.h>

#include <string>
#include <utility>
#include <vector>

#include "transport/tcp/channel.h"
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

// The sockets of a world whose ranks are all connected: [rank][peer][stream].
using Mesh = std::vector<Channels>;
inline Mesh socket_mesh(int ranks, int streams, const std::string& host = "127.0.0.1",
                        const SocketOptions& options = {}) {
  const auto n = static_cast<std::size_t>(ranks);
  Mesh mesh(n);
  for (auto& row : mesh) {
    row.resize(n);
  }
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = a + 1; b < n; ++b) {
      for (int i = 0; i < streams; ++i) {
        SocketPair pair = socket_pair(host, options);
        mesh[a][b].push_back(std::move(pair.a));
        mesh[b][a].push_back(std::move(pair.b));
      }
    }
  }
  return mesh;
}

}  // namespace unisono::tcp
