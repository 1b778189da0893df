#include "comm/rendezvous_net.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <set>

#include "base/asking.h"
#include "comm/quorum.h"
#include "comm/rendezvous_addresses.h"
#include "comm/rendezvous_card.h"
#include "comm/rendezvous_net_root.h"
#include "comm/rendezvous_process.h"
#include "comm/rendezvous_roll.h"
#include "transport/tcp/meet.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr std::size_t kMostTableBytes = std::size_t{256} << 20;
constexpr int kMostNetRanks = 65536;
constexpr const char* kSurvivors = "~survivors-";  // behind the name of a job
constexpr int kGraceMs = 3000;  // rank 0 knows best what is wrong, and says so in this time

bool forces_tcp(const ConnectOptions& options) {
  return options.transport == "tcp";
}

// What tells whether two processes can reach each other's memory: the same kernel, network
// namespace (where they would meet) and user.
std::string identity_of_host(const std::string& machine, const ConnectOptions& options) {
  struct stat space = {};
  static_cast<void>(::stat("/proc/self/ns/net", &space));
  std::string identity = machine + "/" + std::to_string(space.st_ino) + "/" +
                         std::to_string(::geteuid()) + "/" + options.host;
  if (forces_tcp(options)) {
    identity += "/rank " + std::to_string(options.rank);
  }
  return identity;
}

Card card_of(const ConnectOptions& options) {
  Card card;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> card.machine;
  card.host = identity_of_host(card.machine, options);
  card.cpus = allowed_cpus();
  return card;
}

bool is_crowded(const std::vector<Card>& cards, const Card& mine) {
  std::set<int> cpus;
  std::size_t ranks = 0;
  for (const Card& card : cards) {
    if (card.machine == mine.machine) {
      ++ranks;
      cpus.insert(card.cpus.begin(), card.cpus.end());
    }
  }
  return ranks > cpus.size();
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
  return {.rank = options.rank,
          .size = options.size,
          .job = options.job + use,
          .token = options.token,
          .protection = tcp::protection_from_environment()};
}

std::vector<Card> join(const Target& target, const ConnectOptions& options, tcp::Gate& gate,
                       const Card& mine) {
  std::vector<std::vector<tcp::Address>> addresses(static_cast<std::size_t>(options.size));
  addresses[0] = target.addresses;
  auto streams = tcp::meet(
      gate, identity_of(options, "/lobby"), addresses,
      {.timeout_ms = options.connect_timeout_ms == 0 ? 1 << 30 : options.connect_timeout_ms,
       .interrupted = options.interrupted});
  tcp::Channel lobby = std::move(streams[0].front());
  const std::function<bool()> interrupted = ten_times_a_second(options.interrupted);
  const Deadline deadline =
      Deadline::of_timeout(options.connect_timeout_ms).later_by_ms(kGraceMs).asking(interrupted);
  std::string obstacle;
  const auto table = ask_text(lobby, to_text(mine), kMostTableBytes, deadline, obstacle);
  if (!table) {
    throw Error(ErrorCode::connection, "rank " + std::to_string(options.rank) +
                                           " has no word from rank 0 at " + options.address + ": " +
                                           obstacle + "\nlook at the last output of rank 0");
  }
  return parse_table(*table, options.size);
}

NetMeeting settle(std::unique_ptr<tcp::Gate> gate, tcp::Identity identity,
                  const std::vector<Card>& cards, const Card& mine) {
  std::vector<std::string> names;
  std::vector<std::vector<tcp::Address>> addresses;
  for (const Card& card : cards) {
    names.push_back(card.host);
    addresses.push_back(card.addresses);
  }
  NetMeeting meeting{.hosts = Hosts(identity.rank, names),
                     .crowded = is_crowded(cards, mine),
                     .identity = std::move(identity),
                     .gate = std::move(gate),
                     .addresses = addresses,
                     .door = {.addresses = std::move(addresses), .sockets = {}}};
  for (const Card& card : cards) {
    meeting.worlds = std::max(meeting.worlds, card.worlds);
  }
  for (const int rank : meeting.hosts.here()) {
    meeting.addresses[static_cast<std::size_t>(rank)].clear();
  }
  return meeting;
}

// The same by what the caller brought along.
std::vector<Card> exchange_cards(const ConnectOptions& options, const Card& mine) {
  const std::vector<std::string> texts = options.exchange(to_text(mine));
  if (texts.size() != static_cast<std::size_t>(options.size)) {
    throw Error(ErrorCode::usage, "ConnectOptions::exchange returned " +
                                      std::to_string(texts.size()) + " texts for " +
                                      std::to_string(options.size) +
                                      " ranks\nit must return the text of each rank, in order");
  }
  std::vector<Card> cards;
  for (const std::string& text : texts) {
    cards.push_back(parse_card(text));
  }
  if (const std::string what = find_unreachable(cards); !what.empty()) {
    throw Error(ErrorCode::config, what);
  }
  return cards;
}

}  // namespace

bool meets_over_network(const ConnectOptions& options) {
  return options.size > 1 && options.transport != "shm" &&
         (!options.address.empty() || options.exchange != nullptr);
}

NetMeeting meet_over_network(const ConnectOptions& options, int worlds) {
  if (options.size > kMostNetRanks || options.rank < 0) {
    throw Error(ErrorCode::config, "rank " + std::to_string(options.rank) + " of " +
                                       std::to_string(options.size) +
                                       " cannot be: ranks of several hosts are numbered from 0, up "
                                       "to " +
                                       std::to_string(kMostNetRanks));
  }
  if (options.token.empty()) {
    throw Error(ErrorCode::config,
                "a world over the network needs a job token: whoever knows it is let in\nset "
                "UNISONO_TOKEN to the same secret on all ranks, for example from: openssl rand "
                "-hex 16");
  }
  const bool has_lobby = options.exchange == nullptr;
  const std::function<bool()> interrupted = ten_times_a_second(options.interrupted);
  const Deadline deadline = Deadline::of_timeout(options.connect_timeout_ms).asking(interrupted);
  const Target target = options.address.empty() ? Target{} : find_target(options.address, deadline);
  const tcp::PortRange ports = ports_of(options);
  const bool is_root = options.rank == 0;
  const std::vector<tcp::Address> lobby =
      is_root && has_lobby ? lobby_addresses(target, options) : std::vector<tcp::Address>{};
  Card mine = card_of(options);
  mine.worlds = worlds;
  mine.addresses =
      target.addresses.empty() ? own_addresses(options) : own_addresses(target, options);
  tcp::Identity identity = identity_of(options, "");
  auto gate = std::make_unique<tcp::Gate>(listen_at_all(mine.addresses, ports), identity);
  mine.addresses = gate->addresses();
  std::vector<Card> cards;
  if (!has_lobby) {
    cards = exchange_cards(options, mine);
  } else if (is_root) {
    tcp::Gate at(listen_at_all(lobby, {}), identity_of(options, "/lobby"));
    cards = collect_cards(at, mine, options);
  } else {
    cards = join(target, options, *gate, mine);
  }
  return settle(std::move(gate), std::move(identity), cards, mine);
}

tcp::Channels connect_hosts(NetMeeting& meeting, int timeout_ms,
                            const std::function<bool()>& interrupted) {
  auto streams = tcp::meet(*meeting.gate, meeting.identity, meeting.addresses,
                           {.timeout_ms = timeout_ms == 0 ? 1 << 30 : timeout_ms,
                            .relay = tcp::relay_from_environment(),
                            .interrupted = interrupted});
  const std::vector<tcp::Address> mine = meeting.gate->addresses();
  meeting.gate.reset();
  for (const tcp::Address& address : mine) {
    if (UniqueFd socket = tcp::reserve(address)) {
      meeting.door.sockets.push_back(std::move(socket));
    }
  }
  return streams;
}

std::string first_name(const std::string& job) {
  return job.substr(0, job.find(kSurvivors));
}

std::string name_of_survivors(const std::string& job, const std::string& mark) {
  return first_name(job) + kSurvivors + mark;
}

NetMeeting meet_again_over_network(ConnectOptions& options, Door& door, const Rules& rules,
                                   Survivors& survivors) {
  const auto self = static_cast<std::size_t>(options.rank);
  std::vector<tcp::Address> where = door.addresses[self];
  for (tcp::Address& address : where) {
    address = address.with_port(0);
  }
  std::vector<UniqueFd> listeners = listen_at_all(where, ports_of(options));
  Card mine = card_of(options);
  for (const UniqueFd& listener : listeners) {
    mine.addresses.push_back(tcp::local_address(listener.get()));
  }
  Roll roll{.self = identity_of(options, ""),
            .addresses = door.addresses,
            .door = door.sockets,
            .mine = mine,
            .is_gone = rules.is_gone,
            .patience_ms = rules.patience_ms,
            .timeout_ms = rules.timeout_ms,
            .quorum = rules.quorum,
            .last = survivors.ranks};
  const RollAnswer answer = call_roll(roll);
  const auto place = std::find(answer.ranks.begin(), answer.ranks.end(), options.rank);
  if (place == answer.ranks.end()) {
    throw_evicted();
  }
  survivors = {.ranks = answer.ranks, .mark = answer.mark};
  options.rank = static_cast<int>(place - answer.ranks.begin());
  options.size = static_cast<int>(answer.ranks.size());
  options.job = name_of_survivors(options.job, answer.mark);
  tcp::Identity identity = identity_of(options, "");
  auto gate = std::make_unique<tcp::Gate>(std::move(listeners), identity);
  return settle(std::move(gate), std::move(identity), answer.cards, mine);
}

}  // namespace unisono::comm
