#include "transport/networks.h"

#include <array>

#include "transport/ucx/ucx_network.h"

namespace unisono::transport {
namespace {

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

}  // namespace unisono::transport
