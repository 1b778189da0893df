// Relays between the ranks of a job: ranks dial the relay instead of each other
// (bootstrap/relay.h), and each connection crosses its own emulated link.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>

#include "base/unique_fd.h"
#include "bootstrap/relay.h"
#include "chaos/relay.h"

namespace unisono::chaos {

class RelayServer {
 public:
  // Listens at `address`, at any port. The random choices of a link follow from the seed, the two
  // ranks, and the number of their earlier connections. Throws config, resource.
  RelayServer(const tcp::Address& address, const Options& link);
  RelayServer(const RelayServer&) = delete;
  RelayServer& operator=(const RelayServer&) = delete;
  ~RelayServer();

  const tcp::RelayPlace& place() const { return place_; }  // for UNISONO_RELAY
  // Resets the connections that this rank has now. Any thread.
  void reset(int rank);

 private:
  struct PendingPeer {
    UniqueFd socket;
    std::int64_t deadline_ms = 0;
    tcp::RelayRequest request = {};
    UniqueFd onward = {};  // being connected
  };
  struct Line {
    int from;
    int to;
    std::unique_ptr<Relay> relay;
  };
  void run();
  void accept_all(std::int64_t now_ms);
  bool attend(PendingPeer& peer);  // false: it is served, or not worth it
  bool hear(PendingPeer& peer) const;
  void connect(PendingPeer& peer);

  UniqueFd listener_;
  tcp::RelayPlace place_;
  Options link_;
  std::list<PendingPeer> pending_;
  std::map<std::tuple<int, int, int>, std::uint64_t> dialled_;  // from, to, stream
  std::mutex mutex_;                                            // guards lines_
  std::list<Line> lines_;
  UniqueFd bell_;  // rings when it is to end
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace unisono::chaos
