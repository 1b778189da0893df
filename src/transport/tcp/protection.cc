#include "transport/tcp/protection.h"

#include "base/env.h"

namespace unisono::tcp {

Protection protection_from_environment() {
  return {.tls = read_flag("UNISONO_TLS"), .checksum = read_flag("UNISONO_CHECKSUM")};
}

}  // namespace unisono::tcp
