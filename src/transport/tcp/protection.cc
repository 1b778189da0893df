#include "transport/tcp/protection.h"

#include "base/env.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

constexpr const char* kNetwork = "UNISONO_NETWORK";

bool asks_for_ucx() {
  const std::string network = read_env(kNetwork).value_or("");
  if (!network.empty() && network != "tcp" && network != "ucx") {
    throw Error(ErrorCode::config, std::string(kNetwork) + "=" + network +
                                       " is neither tcp nor ucx\ncorrect or unset " + kNetwork);
  }
  return network == "ucx";
}

}  // namespace

Protection protection_from_environment() {
  const Protection read{.tls = read_flag("UNISONO_TLS"),
                        .checksum = read_flag("UNISONO_CHECKSUM"),
                        .certificates = !read_env("UNISONO_TLS_IDENTITY").value_or("").empty(),
                        .ucx = asks_for_ucx()};
  if (read.ucx && (read.tls || read.checksum)) {
    throw Error(ErrorCode::config, std::string(read.tls ? "UNISONO_TLS" : "UNISONO_CHECKSUM") +
                                       "=1, but over UCX messages are neither encrypted nor checked"
                                       "\nunset it, or use UNISONO_NETWORK=tcp");
  }
  return read;
}

}  // namespace unisono::tcp
