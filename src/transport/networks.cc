#include "transport/networks.h"

#include <array>
#include <string>

#include "base/env.h"
#include "transport/ucx/ucx_network.h"
#include "unisono/error.hpp"

namespace unisono::transport {
namespace {

constexpr const char* kAsked = "UNISONO_NETWORK";

constexpr std::array kNetworks = {
    NetworkTraits{.name = "tcp", .title = "TCP"},
    NetworkTraits{.name = "ucx",
                  .title = "UCX",
                  .install = "install UCX (Debian: libucx0)",
                  .setting = "UCX_TLS",
                  .why_not = ucx::why_no_ucx,
                  .version = ucx::version,
                  .devices = ucx::devices,
                  .create = ucx::create},
};
static_assert(kNetworks.size() <= 16, "4 bits of the handshake say which");

}  // namespace

std::span<const NetworkTraits> networks() {
  return kNetworks;
}

std::uint8_t asked_network() {
  const std::string name = read_env(kAsked).value_or("");
  if (name.empty()) {
    return 0;
  }
  std::string all;
  std::uint8_t number = 0;
  for (const NetworkTraits& network : kNetworks) {
    if (name == network.name) {
      return number;
    }
    all += (number == 0 ? "neither " : " nor ") + std::string(network.name);
    ++number;
  }
  throw Error(ErrorCode::config,
              std::string(kAsked) + "=" + name + " is " + all + "\ncorrect or unset " + kAsked);
}

}  // namespace unisono::transport
