// Validates the UNISONO_* environment before any rank waits.
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "bootstrap/addresses.h"
#include "bootstrap/launcher_env.h"
#include "bootstrap/relay.h"
#include "diagnose/deadlock_policy.h"
#include "select/choice.h"
#include "select/profile.h"
#include "transport/tcp/certificates.h"
#include "transport/tcp/protection.h"

namespace unisono {

std::vector<std::string> check_environment() {
  comm::check_texts_and_numbers(read_env);
  for (const std::string_view name : {"UNISONO_TLS", "UNISONO_REPLACE_GLOO", "UNISONO_QUIET"}) {
    static_cast<void>(read_flag(name));
  }
  static_cast<void>(tcp::protection_of(comm::checksum_of(read_env)));
  static_cast<void>(tcp::certificates_from_environment());
  static_cast<void>(comm::parse_deadlock_policy(read_env("UNISONO_DEADLOCK").value_or("")));
  static_cast<void>(comm::parse_forced(read_env("UNISONO_ALGORITHM").value_or("")));
  static_cast<void>(comm::Profile::find(read_env("UNISONO_PROFILE").value_or("")));
  ConnectOptions network;
  network.ports = read_env("UNISONO_PORTS").value_or("");
  network.interface = read_env("UNISONO_INTERFACE").value_or("");
  static_cast<void>(comm::ports_of(network));
  if (!network.interface.empty()) {
    static_cast<void>(comm::own_addresses(network));
  }
  static_cast<void>(tcp::relay_from_environment());
  return unknown_env_warnings();
}

}  // namespace unisono
