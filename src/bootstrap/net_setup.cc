#include "bootstrap/net_setup.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/host_identity.h"
#include "bootstrap/process.h"
#include "transport/networks.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

bool forces_tcp(const ConnectOptions& options) {
  return options.transport == TransportKind::tcp;
}

// Returns a text that is equal for two processes that can, and should, share memory.
std::string identity_of_host(const std::string& machine, const ConnectOptions& options) {
  std::string identity = host_identity(machine) + "/" + options.host;
  if (forces_tcp(options)) {
    identity += "/rank " + std::to_string(options.rank);
  }
  return identity;
}

bool is_oversubscribed(const std::vector<BusinessCard>& cards, const BusinessCard& mine) {
  std::set<int> cpus;
  std::size_t ranks = 0;
  for (const BusinessCard& card : cards) {
    if (card.machine == mine.machine) {
      ++ranks;
      cpus.insert(card.cpus.begin(), card.cpus.end());
    }
  }
  return ranks > cpus.size();
}

// A link-local address is reached through this host's own interface to the same cable, which is the
// interface of this rank's own address.
tcp::Address reached_from(const BusinessCard& mine, const tcp::Address& address) {
  if (!address.is_link_local()) {
    return address;
  }
  const auto own =
      std::find_if(mine.addresses.begin(), mine.addresses.end(),
                   [](const tcp::Address& candidate) { return candidate.scope() != 0; });
  return own == mine.addresses.end() ? address : address.with_scope(own->scope());
}

}  // namespace

BusinessCard card_of(const ConnectOptions& options) {
  BusinessCard card;
  card.machine = boot_id();
  card.host = identity_of_host(card.machine, options);
  card.cpus = allowed_cpus();
  return card;
}

std::vector<UniqueFd> listen_at_all(const std::vector<tcp::Address>& addresses,
                                    const tcp::PortRange& ports) {
  std::vector<UniqueFd> listeners;
  for (const tcp::Address& address : addresses) {
    listeners.push_back(tcp::listen_at(
        address, address.port() == 0 ? ports : tcp::PortRange{.first = address.port(), .last = 0}));
  }
  return listeners;
}

tcp::Identity identity_of(const ConnectOptions& options, const char* use) {
  const tcp::Protection protection = tcp::protection_of(options.checksum);
  const transport::NetworkTraits& network = transport::networks()[protection.network];
  if (const std::string why = network.why_not == nullptr ? "" : network.why_not(); !why.empty()) {
    throw Error(ErrorCode::config, "UNISONO_NETWORK=" + std::string(network.name) + ", but " + why +
                                       "\n" + std::string(network.install) +
                                       ", or unset UNISONO_NETWORK");
  }
  return {.rank = options.rank,
          .size = options.size,
          .job = options.job + use,
          .token = options.token,
          .protection = protection,
          .certificates = tcp::certificates_from_environment()};
}

NetMeeting settle(std::unique_ptr<tcp::Acceptor> acceptor, tcp::Identity identity,
                  const std::vector<BusinessCard>& cards, const BusinessCard& mine) {
  std::vector<std::string> names;
  std::vector<std::vector<tcp::Address>> addresses;
  for (const BusinessCard& card : cards) {
    names.push_back(card.host);
    std::vector<tcp::Address>& own = addresses.emplace_back();
    std::transform(card.addresses.begin(), card.addresses.end(), std::back_inserter(own),
                   [&mine](const tcp::Address& address) { return reached_from(mine, address); });
  }
  NetMeeting meeting{.hosts = Hosts(identity.rank, names),
                     .oversubscribed = is_oversubscribed(cards, mine),
                     .identity = std::move(identity),
                     .acceptor = std::move(acceptor),
                     .addresses = addresses,
                     .endpoints = {.addresses = std::move(addresses), .sockets = {}}};
  for (const BusinessCard& card : cards) {
    meeting.worlds = std::max(meeting.worlds, card.worlds);
  }
  for (const int rank : meeting.hosts.here()) {
    meeting.addresses[static_cast<std::size_t>(rank)].clear();
  }
  return meeting;
}

}  // namespace unisono::comm
