// A relay between ranks, such as `unisono run --chaos`. A rank dials the relay instead of its peer,
// names the peer in one line, and then continues as if it were connected to the peer. The ranks
// authenticate each other and encrypt end to end; the relay takes no part in that.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "transport/tcp/address.h"

namespace unisono::tcp {

struct RelayPlace {
  Address address;
  std::string key;  // so that the relay serves only its own job
};
// Reads UNISONO_RELAY, such as "10.0.0.1:4000/key". Returns none if it is unset; ranks are then
// dialled directly. Throws config.
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
// Returns "relay KEY FROM TO STREAM ADDRESS\n"; the parser gets the line without its end.
std::string to_text(const RelayRequest& request);
Parsed<RelayRequest> parse_relay_request(std::string_view line);

}  // namespace unisono::tcp
