#include "transport/tcp/protection.h"

#include <string>

#include "base/env.h"
#include "transport/networks.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr const char* kNetwork = "UNISONO_NETWORK";

// The number of the network that is asked for.
std::uint8_t asked_network() {
  const std::string name = read_env(kNetwork).value_or("");
  if (name.empty()) {
    return 0;
  }
  std::string all;
  std::uint8_t number = 0;
  for (const transport::NetworkTraits& network : transport::networks()) {
    if (name == network.name) {
      return number;
    }
    all += (number == 0 ? "neither " : " nor ") + std::string(network.name);
    ++number;
  }
  throw Error(ErrorCode::config,
              std::string(kNetwork) + "=" + name + " is " + all + "\ncorrect or unset " + kNetwork);
}

}  // namespace

Protection protection_of(std::string_view checksum) {
  if (!checksum.empty() && checksum != "0" && checksum != "1") {
    throw Error(ErrorCode::config, "UNISONO_CHECKSUM=" + std::string(checksum) +
                                       " is neither 0 nor 1\ncorrect or unset UNISONO_CHECKSUM, or "
                                       "the option `checksum`");
  }
  const std::uint8_t network = asked_network();
  const Protection read{.tls = read_flag("UNISONO_TLS"),
                        .checksum = checksum == "1" || (checksum.empty() && network == 0),
                        .certificates = !read_env("UNISONO_TLS_IDENTITY").value_or("").empty(),
                        .network = network};
  if (read.network != 0 && (read.tls || read.checksum)) {
    throw Error(ErrorCode::config, std::string(read.tls ? "UNISONO_TLS" : "UNISONO_CHECKSUM") +
                                       "=1, but over " +
                                       std::string(transport::networks()[network].title) +
                                       " messages are neither encrypted nor checked\nunset it, or "
                                       "use UNISONO_NETWORK=tcp");
  }
  return read;
}

}  // namespace unisono::tcp
