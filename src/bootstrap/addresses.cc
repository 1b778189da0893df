#include "bootstrap/addresses.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "bootstrap/name_lookup.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr const char* kScopeAdvice =
    "\nwrite [fe80::1%eth0]:29600 with the interface's name on this host; names differ between "
    "hosts";

// Returns this host's addresses that the selector includes; loopback addresses only if they are
// named.
std::vector<tcp::Address> selected(const ConnectOptions& options) {
  const auto selector = tcp::Selector::parse(options.interface);
  if (!selector.value) {
    throw Error(ErrorCode::config, "interface \"" + options.interface + "\": " + selector.message +
                                       (selector.position.empty() ? "" : ": " + selector.position));
  }
  std::vector<tcp::Address> addresses;
  for (const tcp::Interface& interface : tcp::interfaces()) {
    if (selector.value->takes(interface) && !interface.address.is_link_local() &&
        (!options.interface.empty() || !interface.address.is_loopback())) {
      addresses.push_back(interface.address);
    }
  }
  if (addresses.empty() && !options.interface.empty()) {
    std::string names;
    for (const tcp::Interface& interface : tcp::interfaces()) {
      names += (names.empty() ? "" : ", ") + interface.name + " " + interface.address.host_text();
    }
    throw Error(ErrorCode::config, "interface \"" + options.interface +
                                       "\" matches no interface of this host\nit has " + names);
  }
  return addresses;
}

bool is_mine(const tcp::Address& address) {
  const std::vector<tcp::Interface> all = tcp::interfaces();
  return address.is_loopback() ||
         std::any_of(all.begin(), all.end(), [&](const tcp::Interface& interface) {
           return interface.address.same_host(address);
         });
}

}  // namespace

Target find_target(const std::string& text, const Deadline& deadline) {
  const auto literal = tcp::Address::parse(text);
  const auto no_port = [&]() -> Error {
    return {ErrorCode::config,
            "the address \"" + text +
                "\" has no port\nwrite host:port, with a free port on rank 0's host"};
  };
  if (literal.value) {
    if (literal.value->port() == 0) {
      throw no_port();
    }
    if (!literal.value->is_v4() && literal.value->is_link_local() && literal.value->scope() == 0) {
      throw Error(ErrorCode::config, "the address \"" + text +
                                         "\" has no interface; a link-local address needs one" +
                                         kScopeAdvice);
    }
    return {.addresses = {*literal.value}};
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size()) {
    throw no_port();
  }
  const std::string host = text.substr(0, colon);
  if (const std::size_t zone = host.find('%'); zone != std::string::npos) {
    throw Error(ErrorCode::config,
                "this host has no interface \"" + host.substr(zone + 1, host.find(']') - zone - 1) +
                    "\", which the address \"" + text + "\" names" + kScopeAdvice);
  }
  const LookupResult looked = look_up(host, text.substr(colon + 1), deadline);
  if (looked.timed_out) {
    throw Error(ErrorCode::connection, "no name server answered in time for \"" + host +
                                           "\", the host of rank 0\nwrite an IP address, or add "
                                           "the name to /etc/hosts; check: getent hosts " +
                                           host);
  }
  if (looked.error != 0) {
    throw Error(ErrorCode::config,
                "the address \"" + text +
                    "\" cannot be resolved on this host: " + ::gai_strerror(looked.error) +
                    "\nwrite an IP address, or a name that this host can resolve");
  }
  Target target{.addresses = {}, .is_name = host != "localhost"};
  for (const addrinfo* entry = looked.found.get(); entry != nullptr; entry = entry->ai_next) {
    target.addresses.emplace_back(entry->ai_addr, entry->ai_addrlen);
  }
  return target;
}

tcp::PortRange ports_of(const ConnectOptions& options) {
  if (options.ports.empty()) {
    return {};
  }
  tcp::PortRange range;
  char dash = 0;
  char rest = 0;
  const int got =
      std::sscanf(options.ports.c_str(), "%d%c%d%c", &range.first, &dash, &range.last, &rest);
  const bool right = (got == 1 || (got == 3 && dash == '-' && range.last >= range.first)) &&
                     range.first > 0 && range.first < 65536 && range.last < 65536;
  if (!right) {
    throw Error(ErrorCode::config,
                "ports \"" + options.ports +
                    "\" are not a port range\nwrite one port, or a range such as 20000-20999");
  }
  return range;
}

std::vector<tcp::Address> rendezvous_addresses(const Target& target,
                                               const ConnectOptions& options) {
  std::vector<tcp::Address> addresses;
  std::copy_if(target.addresses.begin(), target.addresses.end(), std::back_inserter(addresses),
               is_mine);
  // A host often resolves its own name to a loopback address, which other hosts cannot reach.
  if (target.is_name && !addresses.empty() &&
      std::all_of(addresses.begin(), addresses.end(),
                  [](const tcp::Address& address) { return address.is_loopback(); })) {
    for (const tcp::Address& address : selected(options)) {
      addresses.push_back(address.with_port(target.addresses.front().port()));
    }
  }
  if (addresses.empty()) {
    throw Error(ErrorCode::config,
                "rank 0 must listen at " + options.address +
                    ", which is not an address of this host" +
                    "\nstart rank 0 on the host given by UNISONO_ADDRESS (or MASTER_ADDR)");
  }
  return addresses;
}

std::vector<tcp::Address> own_addresses(const Target& target, const ConnectOptions& options) {
  std::vector<tcp::Address> addresses;
  if (!options.interface.empty()) {
    addresses = selected(options);
  }
  for (const tcp::Address& to : target.addresses) {
    const auto from = tcp::source_towards(to);
    if (!from || (target.is_name && from->is_loopback())) {
      continue;
    }
    const auto same = [&](const tcp::Address& other) { return other.same_host(*from); };
    const auto known = std::find_if(addresses.begin(), addresses.end(), same);
    if (known != addresses.end()) {
      std::rotate(addresses.begin(), known, known + 1);
    } else if (options.interface.empty()) {
      addresses.push_back(*from);
    }
  }
  if (addresses.empty()) {
    addresses = selected(options);  // the name stands for this very host
  }
  if (addresses.empty()) {
    throw Error(ErrorCode::config, "there is no route from this host to " + options.address +
                                       "\ncheck: ip route get " +
                                       target.addresses.front().host_text());
  }
  return addresses;
}

std::vector<tcp::Address> own_addresses(const ConnectOptions& options) {
  auto addresses = selected(options);
  if (addresses.empty()) {
    addresses.push_back(*tcp::Address::parse("127.0.0.1").value);
  }
  return addresses;
}

}  // namespace unisono::comm
