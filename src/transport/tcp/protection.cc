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

Protection protection_of(std::string_view checksum) {
  if (!checksum.empty() && checksum != "0" && checksum != "1") {
    throw Error(ErrorCode::config, "UNISONO_CHECKSUM=" + std::string(checksum) +
                                       " is neither 0 nor 1\ncorrect or unset UNISONO_CHECKSUM, or "
                                       "the option `checksum`");
  }
  const bool ucx = asks_for_ucx();
  const Protection read{.tls = read_flag("UNISONO_TLS"),
                        .checksum = checksum == "1" || (checksum.empty() && !ucx),
                        .certificates = !read_env("UNISONO_TLS_IDENTITY").value_or("").empty(),
                        .ucx = ucx};
  if (read.ucx && (read.tls || read.checksum)) {
    throw Error(ErrorCode::config, std::string(read.tls ? "UNISONO_TLS" : "UNISONO_CHECKSUM") +
                                       "=1, but over UCX messages are neither encrypted nor checked"
                                       "\nunset it, or use UNISONO_NETWORK=tcp");
  }
  return read;
}

}  // namespace unisono::tcp
