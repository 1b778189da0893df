// How the ranks of several hosts find each other: rank 0 listens at an address that all know; each
// other rank proves the token there and leaves its card; when all cards are in, everybody gets all
// of them: two messages a rank. Ranks that can talk already exchange their cards by that, without a
// lobby. Then the ranks of different hosts connect directly.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/hosts.h"
#include "transport/tcp/gate.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// Where the ranks of a world listened while they met, for those that must meet again after a
// failure: by rank; and this one's sockets, which keep its ports.
struct Door {
  std::vector<std::vector<tcp::Address>> addresses;
  std::vector<UniqueFd> sockets;
};

struct NetMeeting {
  Hosts hosts;
  bool crowded = false;  // more ranks on this machine than CPUs that they may use
  int worlds = 0;        // how many the job has had before: what the one knows who knows most
  tcp::Identity identity;
  std::unique_ptr<tcp::Gate> gate;                   // where the ranks of other hosts connect
  std::vector<std::vector<tcp::Address>> addresses;  // by rank; none for those of this host
  Door door;
};

// Whether these options describe ranks that meet over the network. REQUIRES: resolve()d.
bool meets_over_network(const ConnectOptions& options);
// Blocks until all ranks are there. Errors: config (no token, an address that is none of this
// host), connection ("joined 6 of 8; missing ranks 3, 5", on all ranks). `worlds`: as in Card.
NetMeeting meet_over_network(const ConnectOptions& options, int worlds = 0);
// The streams to the ranks of other hosts, by rank. The gate is closed afterwards, and its ports
// are kept in meeting.door.
tcp::Channels connect_hosts(NetMeeting& meeting, int timeout_ms,
                            const std::function<bool()>& interrupted = nullptr);

// After a failure: those that go on meet.
struct Rules {
  std::function<bool(int)> is_gone;  // proved
  // Of one whose connection has failed, or that has left: how long it may still take to come, in
  // ms. -1: it can be reached, and is waited for.
  std::function<int(int)> patience_ms;
  int timeout_ms = 0;  // 0: for ever
  bool quorum = true;
};
struct Survivors {
  std::vector<int> ranks;  // in the world that ends
  std::string mark;        // of this meeting alone
};
// `options`: of the world that ends; on return of the one to come. `survivors`: of the last
// meeting, if that failed; on return of this one. Errors: evicted.
NetMeeting meet_again_over_network(ConnectOptions& options, Door& door, const Rules& rules,
                                   Survivors& survivors);
// The name of the job of those that go on; and of the first world of all.
std::string name_of_survivors(const std::string& job, const std::string& mark);
std::string first_name(const std::string& job);

}  // namespace unisono::comm
