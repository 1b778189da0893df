#include "transport/tcp/protection.h"

#include <string>

#include "base/env.h"
#include "transport/networks.h"
#include "unisono/error.hpp"

namespace unisono::tcp {

Protection protection_of(std::optional<bool> checksum) {
  const std::uint8_t network = transport::asked_network();
  const Protection read{.tls = read_flag("UNISONO_TLS"),
                        .checksum = checksum.value_or(network == 0),
                        .certificates = !read_env("UNISONO_TLS_IDENTITY").value_or("").empty(),
                        .network = network};
  if (read.network != 0 && (read.tls || read.checksum)) {
    throw Error(ErrorCode::config,
                std::string(read.tls ? "UNISONO_TLS" : "UNISONO_CHECKSUM") + "=1, but over " +
                    std::string(transport::networks()[network].title) +
                    " messages can be neither encrypted nor checked\nunset it, or "
                    "use UNISONO_NETWORK=tcp");
  }
  return read;
}

}  // namespace unisono::tcp
