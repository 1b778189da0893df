// Addresses of hosts: as text, those that this host has, which of them reaches another.
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
  // "10.0.0.1", "10.0.0.1:5000", "fd00::1", "[fd00::1]:5000", "[fe80::1%eth0]:5000". No names: they
  // mean different things on different hosts.
  static Parsed<Address> parse(std::string_view text);

  bool is_v4() const { return storage_.ss_family == AF_INET; }
  bool is_loopback() const;
  bool is_link_local() const;  // valid on one cable only
  // The interface that leads to an IPv6 link-local address: every host has its own number for it.
  unsigned int scope() const;  // 0: none
  Address with_scope(unsigned int scope) const;
  int port() const;
  Address with_port(int port) const;
  std::string text() const;       // with the port
  std::string host_text() const;  // without
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  // Whether the first `bits` of both are the same.
  bool same_network(const Address& other, int bits) const;
  bool same_host(const Address& other) const { return same_network(other, is_v4() ? 32 : 128); }

 private:
  const unsigned char* host() const;

  sockaddr_storage storage_ = {};
  socklen_t length_ = 0;
};

// What the kernel would send from to reach `to`; nothing is sent. nullopt: it cannot be reached.
std::optional<Address> source_towards(const Address& to);

struct Interface {
  std::string name;
  Address address;
};
// The addresses of all interfaces that are up.
std::vector<Interface> interfaces();

// Which addresses may be used: names of interfaces and networks, "eth0,10.0.0.0/8"; with `^` those
// that may not, "^lo,^docker0". Without any that may, all others may.
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
