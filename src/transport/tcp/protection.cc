#include "transport/tcp/protection.h"

#include <string>

#include "base/env.h"
#include "unisono/error.hpp"

namespace unisono::tcp {
namespace {

bool is_on(const std::string& name) {
  const std::string value = read_env(name).value_or("0");
  if (value != "0" && value != "1" && !value.empty()) {
    throw Error(ErrorCode::config, name + "=" + value + " is neither 0 nor 1");
  }
  return value == "1";
}

}  // namespace

Protection protection_from_environment() {
  return {.tls = is_on("UNISONO_TLS"), .checksum = is_on("UNISONO_CHECKSUM")};
}

}  // namespace unisono::tcp
