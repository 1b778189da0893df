#include "transport/tcp/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"

namespace unisono::tcp {
namespace {

std::optional<int> number(std::string_view text, int most) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc{} && end == text.data() + text.size();
  return all && value >= 0 && value <= most ? std::optional(value) : std::nullopt;
}

std::optional<Address> parse_host(std::string_view text) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  const std::size_t zone = text.find('%');
  if (::inet_pton(AF_INET, std::string(text).c_str(), &v4.sin_addr) == 1) {
    return Address(reinterpret_cast<const sockaddr*>(&v4), sizeof(v4));
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(), &v6.sin6_addr) != 1) {
    return std::nullopt;
  }
  if (zone != std::string_view::npos) {
    v6.sin6_scope_id = ::if_nametoindex(std::string(text.substr(zone + 1)).c_str());
    if (v6.sin6_scope_id == 0) {
      return std::nullopt;
    }
  }
  return Address(reinterpret_cast<const sockaddr*>(&v6), sizeof(v6));
}

Parsed<Address> not_an_address(std::string_view text) {
  return Parsed<Address>::failure("not an address; write 10.0.0.1:5000 or [fd00::1]:5000",
                                  std::string(text));
}

}  // namespace

Address::Address(const sockaddr* address, socklen_t length) : length_(length) {
  std::memcpy(&storage_, address, std::min<std::size_t>(length, sizeof(storage_)));
}

Parsed<Address> Address::parse(std::string_view text) {
  std::string_view host = text;
  std::string_view port;
  bool has_port = false;
  if (!text.empty() && text.front() == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || (end + 1 < text.size() && text[end + 1] != ':')) {
      return not_an_address(text);
    }
    host = text.substr(1, end - 1);
    has_port = end + 1 < text.size();
    port = has_port ? text.substr(end + 2) : "";
  } else if (const std::size_t colon = text.find(':');
             colon != std::string_view::npos && text.rfind(':') == colon) {
    host = text.substr(0, colon);
    has_port = true;
    port = text.substr(colon + 1);
  }
  const std::optional<Address> address = parse_host(host);
  const std::optional<int> value = has_port ? number(port, 65535) : 0;
  if (!address || !value) {
    return not_an_address(text);
  }
  return Parsed<Address>::success(address->with_port(*value));
}

const unsigned char* Address::host() const {
  return is_v4() ? reinterpret_cast<const unsigned char*>(
                       &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr)
                 : reinterpret_cast<const unsigned char*>(
                       &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
}

bool Address::is_loopback() const {
  if (is_v4()) {
    return host()[0] == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr) != 0;
}

bool Address::is_link_local() const {
  if (is_v4()) {
    return host()[0] == 169 && host()[1] == 254;
  }
  return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr) != 0;
}

unsigned int Address::scope() const {
  return is_v4() ? 0 : reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_scope_id;
}

Address Address::with_scope(unsigned int scope) const {
  Address other = *this;
  if (!is_v4()) {
    reinterpret_cast<sockaddr_in6*>(&other.storage_)->sin6_scope_id = scope;
  }
  return other;
}

int Address::port() const {
  return ntohs(is_v4() ? reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port
                       : reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
}

Address Address::with_port(int port) const {
  Address other = *this;
  const std::uint16_t value = htons(static_cast<std::uint16_t>(port));
  if (is_v4()) {
    reinterpret_cast<sockaddr_in*>(&other.storage_)->sin_port = value;
  } else {
    reinterpret_cast<sockaddr_in6*>(&other.storage_)->sin6_port = value;
  }
  return other;
}

std::string Address::host_text() const {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(family(), host(), text, sizeof(text));
  std::string result = text;
  if (!is_v4()) {
    char name[IF_NAMESIZE] = {};
    if (scope() != 0 && ::if_indextoname(scope(), name) != nullptr) {
      result += std::string("%") + name;
    }
  }
  return result;
}

std::string Address::text() const {
  const std::string port_text = std::to_string(port());
  return is_v4() ? host_text() + ":" + port_text : "[" + host_text() + "]:" + port_text;
}

bool Address::same_network(const Address& other, int bits) const {
  if (family() != other.family()) {
    return false;
  }
  const unsigned char* a = host();
  const unsigned char* b = other.host();
  for (int i = 0; i < bits; i += 8) {
    const int rest = std::min(8, bits - i);
    if (((a[i / 8] ^ b[i / 8]) >> (8 - rest)) != 0) {
      return false;
    }
  }
  return true;
}

std::optional<Address> source_towards(const Address& to) {
  const UniqueFd socket(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Address target = to.port() == 0 ? to.with_port(9) : to;  // any port: nothing is sent
  sockaddr_storage from{};
  socklen_t length = sizeof(from);
  if (!socket || ::connect(socket.get(), target.get(), target.length()) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &length) != 0) {
    return std::nullopt;
  }
  return Address(reinterpret_cast<const sockaddr*>(&from), length).with_port(0);
}

std::vector<Interface> interfaces() {
  std::vector<Interface> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return all;
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0U) {
      continue;
    }
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6) {
      const std::size_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      all.push_back({.name = entry->ifa_name,
                     .address = Address(entry->ifa_addr, static_cast<socklen_t>(length))});
    }
  }
  return all;
}

Parsed<Selector> Selector::parse(std::string_view text) {
  Selector selector;
  const auto refuse = [](std::string_view word, const char* why) {
    return Parsed<Selector>::failure(why, std::string(word));
  };
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    Rule rule;
    const std::string_view whole = word;
    rule.exclude = !word.empty() && word.front() == '^';
    word.remove_prefix(rule.exclude ? 1 : 0);
    const std::size_t slash = word.find('/');
    rule.network = parse_host(word.substr(0, slash));
    if (rule.network) {
      const int most = rule.network->is_v4() ? 32 : 128;
      const auto bits = slash == std::string_view::npos ? std::optional(most)
                                                        : number(word.substr(slash + 1), most);
      if (!bits) {
        return refuse(whole, "not a network; write 10.0.0.0/8 or fd00::/16");
      }
      rule.bits = *bits;
    } else if (word.empty() || slash != std::string_view::npos) {
      return refuse(whole, "neither an interface nor a network; write eth0,^lo,10.0.0.0/8");
    } else {
      rule.name = word;
    }
    selector.rules_.push_back(std::move(rule));
  }
  return Parsed<Selector>::success(std::move(selector));
}

bool Selector::takes(const Interface& interface) const {
  bool chosen = false;
  bool any_chosen = false;
  for (const Rule& rule : rules_) {
    const bool fits = rule.network ? interface.address.same_network(*rule.network, rule.bits)
                                   : interface.name == rule.name;
    if (fits && rule.exclude) {
      return false;
    }
    chosen = chosen || (fits && !rule.exclude);
    any_chosen = any_chosen || !rule.exclude;
  }
  return chosen || !any_chosen;
}

}  // namespace unisono::tcp
