#include "bootstrap/net.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>

#include "base/asking.h"
#include "bootstrap/absence.h"
#include "bootstrap/addresses.h"
#include "bootstrap/card.h"
#include "bootstrap/net_mesh.h"
#include "bootstrap/net_root.h"
#include "bootstrap/net_setup.h"
#include "bootstrap/probe.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr std::size_t kMostTableBytes = std::size_t{256} << 20;
constexpr int kMostNetRanks = 65536;
constexpr int kReportMs = 3000;  // rank 0 knows best what is wrong, and reports it in this time
// A rank that finds a dead rank on its host waits for this time, until ranks on other hosts have
// found it too. Otherwise they would blame the rank that leaves because of the death.
constexpr std::int64_t kNoticeMs = 300;
constexpr std::chrono::milliseconds kRetryPause(10);

// If rank 0 closes the connection before sending the table, it may just have needed the slot, or
// this rank may have been late. So this rank retries. If nobody listens then, rank 0 is gone.
std::vector<BusinessCard> join(const Target& target, const ConnectOptions& options,
                               tcp::Acceptor& acceptor, const BusinessCard& mine) {
  std::vector<std::vector<tcp::Address>> addresses(static_cast<std::size_t>(options.size));
  addresses[0] = target.addresses;
  const tcp::Identity self = identity_of(options, "/rendezvous");
  const std::function<bool()> interrupted = ten_times_a_second(options.interrupted);
  AbsenceCheck absence_check(options.job, options.size);
  const std::function<bool()> asked = [&] {
    if (const Absence absence = absence_check.find([](int rank) { return rank == 0; });
        absence.rank == 0) {
      throw Error(ErrorCode::connection, absence.message,
                  {.rank = options.rank, .peer = absence.rank});
    }
    return options.interrupted != nullptr && options.interrupted();
  };
  const Deadline connected = Deadline::of_timeout(options.connect_timeout_ms);
  const Deadline deadline = connected.later_by_ms(kReportMs);
  for (bool was_there = false;; was_there = true) {
    const int left_ms = connected.left_ms();
    auto streams =
        tcp::meet(acceptor, self, addresses,
                  {.timeout_ms = left_ms < 0 ? 1 << 30 : std::max(left_ms, 1),
                   .all_listen = was_there,
                   .interrupted = absence_check.has_log() ? asked : options.interrupted});
    // Watches rank 0 during the wait, because rank 0 may vanish with its host and never send its
    // table.
    tcp::HostMonitor monitor(target.addresses);
    const std::function<bool()> look = [&] {
      const std::int64_t now_ms = tcp::clock_ms();
      if (tcp::is_unheard(streams[0].front().get(), tcp::kUnheardMs)) {
        monitor.step(now_ms);
        if (monitor.host_is_gone(now_ms)) {
          tcp::throw_vanished(options.rank, 0, target.addresses.front());
        }
      }
      return interrupted != nullptr && interrupted();
    };
    std::string obstacle;
    const auto table = ask_text(streams[0].front(), to_text(mine), kMostTableBytes,
                                deadline.asking(look), obstacle);
    if (table) {
      return parse_table(*table, options.size);
    }
    if (connected.passed() || deadline.passed()) {
      throw Error(ErrorCode::connection,
                  "rank " + std::to_string(options.rank) + " received no answer from rank 0 at " +
                      options.address + ": " + obstacle + "\nlook at the last output of rank 0");
    }
    std::this_thread::sleep_for(kRetryPause);
  }
}

// Exchanges the cards through the user's function.
std::vector<BusinessCard> exchange_cards(const ConnectOptions& options, const BusinessCard& mine) {
  const std::vector<std::string> texts = options.bootstrap(to_text(mine));
  if (texts.size() != static_cast<std::size_t>(options.size)) {
    throw Error(ErrorCode::usage, "ConnectOptions::bootstrap returned " +
                                      std::to_string(texts.size()) + " texts for " +
                                      std::to_string(options.size) +
                                      " ranks\nit must return the text of each rank, in order");
  }
  std::vector<BusinessCard> cards;
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
  return options.size > 1 && options.transport != TransportKind::shm &&
         (!options.address.empty() || options.bootstrap != nullptr);
}

NetMeeting meet_over_network(const ConnectOptions& options, int worlds) {
  if (options.size > kMostNetRanks || options.rank < 0) {
    throw Error(ErrorCode::config,
                "rank " + std::to_string(options.rank) + " of " + std::to_string(options.size) +
                    " is not possible: ranks of several hosts are numbered from 0 to " +
                    std::to_string(kMostNetRanks));
  }
  if (options.token.empty()) {
    throw Error(ErrorCode::config,
                "a world over the network needs a job token, which proves that a process belongs "
                "to the job\nset "
                "UNISONO_TOKEN to the same secret on all ranks, for example from: openssl rand "
                "-hex 16");
  }
  const bool has_lobby = options.bootstrap == nullptr;
  const std::function<bool()> interrupted = ten_times_a_second(options.interrupted);
  const Deadline deadline = Deadline::of_timeout(options.connect_timeout_ms).asking(interrupted);
  const Target target = options.address.empty() ? Target{} : find_target(options.address, deadline);
  const tcp::PortRange ports = ports_of(options);
  const bool is_root = options.rank == 0;
  const std::vector<tcp::Address> rendezvous =
      is_root && has_lobby ? rendezvous_addresses(target, options) : std::vector<tcp::Address>{};
  BusinessCard mine = card_of(options);
  mine.worlds = worlds;
  mine.addresses =
      target.addresses.empty() ? own_addresses(options) : own_addresses(target, options);
  tcp::Identity identity = identity_of(options, "");
  auto acceptor = std::make_unique<tcp::Acceptor>(listen_at_all(mine.addresses, ports), identity);
  mine.addresses = acceptor->addresses();
  std::vector<BusinessCard> cards;
  if (!has_lobby) {
    cards = exchange_cards(options, mine);
  } else if (is_root) {
    tcp::Acceptor at(listen_at_all(rendezvous, {}), identity_of(options, "/rendezvous"));
    cards = collect_cards(at, mine, options);
  } else {
    cards = join(target, options, *acceptor, mine);
  }
  return settle(std::move(acceptor), std::move(identity), cards, mine);
}

tcp::Channels connect_hosts(NetMeeting& meeting, int timeout_ms,
                            const std::function<bool()>& interrupted,
                            const std::function<void(tcp::Channels, const Error&)>& tell) {
  auto streams = tcp::meet(*meeting.acceptor, meeting.identity, meeting.addresses,
                           {.timeout_ms = timeout_ms == 0 ? 1 << 30 : timeout_ms,
                            .relay = tcp::relay_from_environment(),
                            .all_listen = true,
                            .interrupted = interrupted,
                            .tell = tell});
  const std::vector<tcp::Address> mine = meeting.acceptor->addresses();
  meeting.acceptor.reset();
  for (const tcp::Address& address : mine) {
    if (UniqueFd socket = tcp::reserve(address)) {
      meeting.endpoints.sockets.push_back(std::move(socket));
    }
  }
  return streams;
}

std::function<void()> watch_host(const NetMeeting& meeting) {
  struct Watched {
    int rank = -1;
    tcp::HostMonitor monitor;
    std::int64_t silent_ms = -1;  // since when nobody listens there
  };
  // All copies of the function share this list, because together they are one watch.
  const auto all = std::make_shared<std::vector<Watched>>();
  std::set<int> watched(meeting.hosts.here().begin(), meeting.hosts.here().end());
  // Watches rank 0 too: if it dies before sending the table, other ranks leave because of that.
  watched.insert(0);
  watched.erase(meeting.identity.rank);
  for (const int rank : watched) {
    all->push_back(
        {.rank = rank,
         .monitor = tcp::HostMonitor(meeting.endpoints.addresses[static_cast<std::size_t>(rank)])});
  }
  return [&meeting, all] {
    const auto address_of = [&](int rank) {
      return meeting.endpoints.addresses[static_cast<std::size_t>(rank)].front();
    };
    const std::int64_t now_ms = tcp::clock_ms();
    for (Watched& one : *all) {
      one.monitor.step(now_ms);
      if (one.monitor.host_is_gone(now_ms)) {
        tcp::throw_vanished(meeting.identity.rank, one.rank, address_of(one.rank));
      }
      if (!one.monitor.nobody_listens()) {
        one.silent_ms = -1;
      } else if (one.silent_ms < 0) {
        one.silent_ms = now_ms;
      } else if (now_ms >= one.silent_ms + kNoticeMs) {
        tcp::throw_lost(meeting.identity.rank, one.rank, address_of(one.rank));
      }
    }
  };
}

}  // namespace unisono::comm
