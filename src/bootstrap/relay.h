// A relay between ranks, as `unisono run --chaos` is one: whoever dials a rank dials the relay in
// its place, says in one line whom it means, and then goes on as if that rank were there. What
// authenticates and encrypts a connection is between the ranks; the relay has no part in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "transport/tcp/address.h"

namespace unisono::tcp {

struct RelayPlace {
  Address address;
  std::string key;  // so that the relay serves its own job only
};
// UNISONO_RELAY, "10.0.0.1:4000/key"; none: ranks are dialled directly. Throws config.
std::optional<RelayPlace> relay_from_environment();
std::string to_text(const RelayPlace& place);

struct RelayRequest {
  std::string key;
  int from = 0;  // rank
  int to = 0;
  int stream = 0;
  Address address;  // of `to`
};
inline constexpr std::size_t kMostRelayRequest = 256;
// "relay KEY FROM TO STREAM ADDRESS\n"; what is read is without the end of the line.
std::string to_text(const RelayRequest& request);
Parsed<RelayRequest> parse_relay_request(std::string_view line);

}  // namespace unisono::tcp
