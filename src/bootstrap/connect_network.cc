#include "bootstrap/connect_network.h"

#include <poll.h>

#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/env.h"
#include "bootstrap/card.h"
#include "bootstrap/launcher_env.h"
#include "bootstrap/net.h"
#include "bootstrap/relay.h"
#include "transport/networks.h"
#include "transport/tcp/connections.h"
#include "unisono/error.hpp"

namespace unisono::comm {
namespace {

constexpr std::size_t kMostIntroduction = std::size_t{64} << 10;
constexpr int kLookUs = 1000;

tcp::ConnectionsOptions connections_options() {
  return {.silence_ms = silence_of(read_env)};
}

[[noreturn]] void fail_late(const transport::NetworkTraits& kind, int rank, std::size_t peer) {
  const std::string who = "rank " + std::to_string(peer);
  throw Error(
      ErrorCode::connection,
      "rank " + std::to_string(rank) + " and " + who + " did not connect over " +
          std::string(kind.title) + " in time\nlook at the last output of " + who +
          ", and check that the hosts reach each other over the devices listed by unisono doctor",
      {.rank = rank, .peer = static_cast<int>(peer)});
}

// Each rank sends its introduction to each other rank, over the connection that has proved the
// token. A rank that closes its connection yields an empty text; the world finds out why it closed.
std::vector<std::string> exchange(const transport::NetworkTraits& kind,
                                  transport::IntroducedNetwork& network, tcp::Channels& channels,
                                  int rank, const Deadline& deadline) {
  std::vector<std::string> introductions(channels.size());
  for (std::size_t peer = 0; peer < channels.size(); ++peer) {
    if (!channels[peer].empty()) {
      send_text(channels[peer].front(), network.introduction(static_cast<int>(peer)), deadline);
    }
  }
  for (std::size_t peer = 0; peer < channels.size(); ++peer) {
    if (channels[peer].empty()) {
      continue;
    }
    tcp::Channel& from = channels[peer].front();
    TextReader reader;
    TextReader::State state = reader.step(from, kMostIntroduction);
    for (; state == TextReader::State::going_on; state = reader.step(from, kMostIntroduction)) {
      if (!wait_for(from.get(), POLLIN, deadline)) {
        fail_late(kind, rank, peer);
      }
    }
    if (state == TextReader::State::done) {
      introductions[peer] = reader.text();
    }
  }
  return introductions;
}

std::unique_ptr<transport::Network> introduce(const transport::NetworkTraits& kind,
                                              NetMeeting& meeting, int rank, int timeout_ms,
                                              const std::function<bool()>& interrupted) {
  if (tcp::relay_from_environment()) {
    throw Error(ErrorCode::config, "UNISONO_NETWORK=" + std::string(kind.name) +
                                       ": unisono run --chaos can disturb TCP connections "
                                       "only\nremove --chaos, or use UNISONO_NETWORK=tcp");
  }
  const Deadline deadline = Deadline::of_timeout(timeout_ms).asking(interrupted);
  tcp::Channels channels = connect_hosts(meeting, timeout_ms, interrupted);
  // Opened after the channels: when a process ends, the system closes its descriptors in the order
  // in which they were opened.
  auto network = kind.create(rank, meeting.identity.size);
  const std::vector<std::string> introductions = exchange(kind, *network, channels, rank, deadline);
  network->meet(
      std::make_unique<tcp::Connections>(rank, std::move(channels), connections_options()),
      introductions);
  for (std::vector<int> missing = network->missing(); !missing.empty();
       missing = network->missing()) {
    network->look_for_losses();
    if (network->first_loss() || network->aborted()) {
      return network;  // the world reports the error to all ranks
    }
    deadline.throw_if_interrupted();
    if (deadline.passed()) {
      fail_late(kind, rank, static_cast<std::size_t>(missing.front()));
    }
    network->wait(kLookUs);
  }
  return network;
}

}  // namespace

std::unique_ptr<transport::Network> connect_network(
    NetMeeting& meeting, int rank, int timeout_ms, const std::function<bool()>& interrupted,
    const std::function<void(transport::Network&, const Error&)>& tell) {
  if (meeting.hosts.single()) {
    return nullptr;
  }
  if (const auto& kind = transport::networks()[meeting.identity.protection.network];
      kind.create != nullptr) {
    return introduce(kind, meeting, rank, timeout_ms, interrupted);
  }
  const auto tell_connected = [&](tcp::Channels channels, const Error& error) {
    tcp::Connections connections(rank, std::move(channels), connections_options());
    tell(connections, error);
  };
  return std::make_unique<tcp::Connections>(
      rank, connect_hosts(meeting, timeout_ms, interrupted, tell_connected), connections_options());
}

}  // namespace unisono::comm
