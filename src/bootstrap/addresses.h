// Chooses addresses of ranks on several hosts: the address where rank 0 is found, and the addresses
// on which this rank listens.
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
  bool is_name = false;  // which may mean different addresses on different hosts
};
// Resolves "10.0.0.1:29600", "[fd00::1]:29600" or "node0:29600". Throws aborted if the deadline's
// interrupt function returns true.
Target find_target(const std::string& text, const Deadline& deadline = Deadline::never());
tcp::PortRange ports_of(const ConnectOptions& options);
// Returns the addresses on which rank 0 listens for ranks that use `target`.
std::vector<tcp::Address> rendezvous_addresses(const Target& target, const ConnectOptions& options);
// Returns the addresses at which other ranks reach this rank. First comes the source address that
// the kernel would use towards rank 0, then the other addresses that the selector includes.
std::vector<tcp::Address> own_addresses(const Target& target, const ConnectOptions& options);
// As above if rank 0's address is unknown. Returns a loopback address if there is no other address.
std::vector<tcp::Address> own_addresses(const ConnectOptions& options);

}  // namespace unisono::comm
