// What can carry messages between hosts: one table, which everything that depends on it asks.
//
// A new network is its folder beside this file, a row in networks.cc, and its name in the help of
// UNISONO_NETWORK (base/env.cc).
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
  std::string_view name;   // of UNISONO_NETWORK
  std::string_view title;  // in sentences
  std::string_view install =
      {};  // what to do where it is not there: "install UCX (Debian: libucx0)"
  std::string_view setting = {};                    // what chooses among its devices: "UCX_TLS"
  std::string (*why_not)() = nullptr;               // why it cannot be had here; empty: it can
  std::string (*version)() = nullptr;               // empty where it cannot be had
  std::vector<std::string> (*devices)() = nullptr;  // by its own names. Throws config
  // Throws config where it cannot be had, and resource.
  std::unique_ptr<IntroducedNetwork> (*create)(int rank, int ranks) = nullptr;
};

// The first is TCP, whose connections the others are introduced over: it has only names.
std::span<const NetworkTraits> networks();
// The number there of the one that UNISONO_NETWORK names; TCP's if it names none. Throws config.
std::uint8_t asked_network();

}  // namespace unisono::transport
