// Which addresses the ranks of several hosts use: where rank 0 is found, where this rank listens.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "transport/tcp/socket.h"
#include "unisono/options.hpp"

namespace unisono::comm {

// All errors are config.
struct Target {
  std::vector<tcp::Address> addresses;
  bool is_name = false;  // which means different things on different hosts
};
// "10.0.0.1:29600", "[fd00::1]:29600", "node0:29600". Throws aborted, too, where the deadline asks.
Target find_target(const std::string& text, const Deadline& deadline = Deadline::never());
tcp::PortRange ports_of(const ConnectOptions& options);
// Where rank 0 listens for those that look for `target`.
std::vector<tcp::Address> lobby_addresses(const Target& target, const ConnectOptions& options);
// Where others reach this rank: where the kernel would send from to reach rank 0 first, and what
// else the selector takes.
std::vector<tcp::Address> own_addresses(const Target& target, const ConnectOptions& options);
// The same where nobody says where rank 0 is. A loopback address if there is no other.
std::vector<tcp::Address> own_addresses(const ConnectOptions& options);

}  // namespace unisono::comm
