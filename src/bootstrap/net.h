// How the ranks of several hosts find each other: rank 0 listens at an address that all know; each
// other rank proves the token there and leaves its card; when all cards are in, everybody gets all
// of them: two messages a rank. Ranks that can talk already exchange their cards by that, without a
// lobby. Then the ranks of different hosts connect directly.
#pragma once

#include <functional>

#include "bootstrap/net_setup.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// Whether these options describe ranks that meet over the network. REQUIRES: resolve()d.
bool meets_over_network(const ConnectOptions& options);
// Blocks until all ranks are there. Errors: config (no token, an address that is not one of this
// host), connection ("joined 6 of 8; missing ranks 3, 5", on all ranks). `worlds`: as in Card.
NetMeeting meet_over_network(const ConnectOptions& options, int worlds = 0);
// The streams to the ranks of other hosts, by rank. The acceptor is closed afterwards, and its
// ports are kept in meeting.endpoints. `tell`: as in tcp::MeetOptions.
tcp::Channels connect_hosts(NetMeeting& meeting, int timeout_ms,
                            const std::function<bool()>& interrupted = nullptr,
                            const std::function<void(tcp::Channels, const Error&)>& tell = nullptr);

// To be asked now and then while ranks of one host wait for each other, before connect_hosts():
// throws peer_lost for one of them, or rank 0, that is dead. `meeting` must outlive it.
std::function<void()> watch_host(const NetMeeting& meeting);

}  // namespace unisono::comm
