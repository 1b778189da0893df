// Host addresses: their text, the addresses of this host, and this host's address towards another
// host.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"

namespace unisono::tcp {

// IPv4 or IPv6, with a port.
class Address {
 public:
  Address() = default;
  Address(const sockaddr* address, socklen_t length);
  // Parses "10.0.0.1", "10.0.0.1:5000", "fd00::1", "[fd00::1]:5000" or "[fe80::1%eth0]:5000". Names
  // are refused, because they can mean different addresses on different hosts.
  static Parsed<Address> parse(std::string_view text);

  bool is_v4() const { return storage_.ss_family == AF_INET; }
  bool is_loopback() const;
  bool is_link_local() const;  // valid on one cable only
  // Interface number for an IPv6 link-local address; every host numbers its interfaces itself.
  unsigned int scope() const;  // 0: none
  Address with_scope(unsigned int scope) const;
  int port() const;
  Address with_port(int port) const;
  std::string text() const;       // with the port
  std::string host_text() const;  // without the port
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  // Returns true if the first `bits` of both addresses are equal.
  bool same_network(const Address& other, int bits) const;
  bool same_host(const Address& other) const { return same_network(other, is_v4() ? 32 : 128); }

 private:
  const unsigned char* host() const;

  sockaddr_storage storage_ = {};
  socklen_t length_ = 0;
};

// Returns the address that the kernel would use to reach `to`; sends nothing. nullopt: unreachable.
std::optional<Address> source_towards(const Address& to);

struct Interface {
  std::string name;
  Address address;
};
// Returns the addresses of all interfaces that are up.
std::vector<Interface> interfaces();

// Selects addresses by interface names and networks: "eth0,10.0.0.0/8" includes them, and
// "^lo,^docker0" excludes them. A list that only excludes selects everything else.
class Selector {
 public:
  static Parsed<Selector> parse(std::string_view text);
  bool takes(const Interface& interface) const;

 private:
  struct Rule {
    bool exclude = false;
    std::string name;                // of an interface, or
    std::optional<Address> network;  // with
    int bits = 0;
  };
  std::vector<Rule> rules_;
};

}  // namespace unisono::tcp
