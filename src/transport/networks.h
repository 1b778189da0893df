// The networks that can carry messages between hosts, in one table.
//
// A new network needs its folder beside this file, a row in networks.cc, and its name in the help
// of UNISONO_NETWORK (base/env.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transport/introduced_network.h"

namespace unisono::transport {

struct NetworkTraits {
  std::string_view name;          // for UNISONO_NETWORK
  std::string_view title;         // for use in sentences
  std::string_view install = {};  // what to do if it is missing: "install UCX (Debian: libucx0)"
  std::string_view setting = {};  // selects among its devices: "UCX_TLS"
  std::string (*why_not)() = nullptr;               // why it is unavailable; empty: it is available
  std::string (*version)() = nullptr;               // empty if unavailable
  std::vector<std::string> (*devices)() = nullptr;  // by its own names. Throws config
  // Throws resource, and config if the network is unavailable.
  std::unique_ptr<IntroducedNetwork> (*create)(int rank, int ranks) = nullptr;
};

// Returns the table. Its first row is TCP, whose connections introduce the other networks; the row
// of TCP has only names.
std::span<const NetworkTraits> networks();
// Returns the index of the network that UNISONO_NETWORK names, or the index of TCP if the variable
// is not set. Throws config.
std::uint8_t asked_network();

}  // namespace unisono::transport
