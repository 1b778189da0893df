// Connects ranks on several hosts. Rank 0 listens at an address that all ranks know. Every other
// rank connects to rank 0, proves that it knows the token, and sends its card (bootstrap/card.h).
// When rank 0 has all cards, it sends all of them to every rank. So every rank but rank 0 sends and
// receives one message. If ConnectOptions::bootstrap is set, the ranks exchange their cards through
// this function of the user instead. Afterwards ranks on different hosts connect directly.
#pragma once

#include <functional>

#include "bootstrap/net_setup.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// Returns true if, according to these options, ranks connect over the network. REQUIRES: resolve()
// has completed the options.
bool meets_over_network(const ConnectOptions& options);
// Blocks until all ranks have joined. Errors: config (no token, or an address of another host),
// connection ("joined 6 of 8; missing ranks 3, 5", on all ranks). `worlds` is as in Card.
NetMeeting meet_over_network(const ConnectOptions& options, int worlds = 0);
// Returns the streams to ranks on other hosts, by rank. Afterwards the acceptor is closed, and
// meeting.endpoints keeps its ports. `tell` is as in tcp::MeetOptions.
tcp::Channels connect_hosts(NetMeeting& meeting, int timeout_ms,
                            const std::function<bool()>& interrupted = nullptr,
                            const std::function<void(tcp::Channels, const Error&)>& tell = nullptr);

// Returns a function that must be called occasionally while ranks on one host wait for each other,
// before connect_hosts(). It throws peer_lost if one of these ranks, or rank 0, is dead. `meeting`
// must outlive the function.
std::function<void()> watch_host(const NetMeeting& meeting);

}  // namespace unisono::comm
