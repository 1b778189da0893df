#include "comm/connect.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/env.h"
#include "bootstrap/absence.h"
#include "bootstrap/connect_network.h"
#include "bootstrap/net.h"
#include "membership/abort_word.h"
#include "membership/meet_again.h"
#include "select/profile.h"

namespace unisono::comm {
namespace {

constexpr int kLeastConnectMs = 1000;
// Time for which a rank keeps answering after it leaves because a rank on its host has died. Ranks
// on other hosts detect deaths themselves; without this delay they could not tell which of the two
// ranks died first.
constexpr int kFarewellMs = 500;
// Time for peers to receive the last message of a rank that reports which rank is dead.
constexpr int kLastMessageMs = 500;

// Returns the remaining time, at least kLeastConnectMs, so that a set-up that is nearly complete
// can finish.
int left_ms(const Deadline& deadline) {
  const int ms = deadline.left_ms();
  return ms < 0 ? 0 : std::max(ms, kLeastConnectMs);
}

// Joins the ranks on this host if the job has several hosts. The meeting's acceptor must outlive
// the result.
std::unique_ptr<LocalWorld> join_host(const ConnectOptions& here, const NetMeeting& meeting) {
  try {
    return LocalWorld::join(here, RankNames(meeting.hosts.here()), watch_host(meeting));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::peer_lost) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kFarewellMs));
    }
    throw;
  }
}

// Reports a death to connected ranks on other hosts. They may have finished connecting and wait for
// this rank in their world.
void tell_of_a_death(transport::Network& connected, std::uint32_t epoch, const Error& error) {
  const int dead = error.context().peer;
  connected.begin_epoch(epoch);
  tell_hosts_of_abort(connected, error.code(), dead, std::string(error.message()));
  connected.leave({});
  const Deadline deadline = Deadline::after_ms(kLastMessageMs);
  while (!connected.delivered([dead](int rank) { return rank == dead; }, kLastMessageMs) &&
         !deadline.passed()) {
    connected.wait(1000);
  }
}

std::shared_ptr<World> connect(const ConnectOptions& options, Ancestry ancestry) {
  Setup setup{.options = resolve(options), .ancestry = std::move(ancestry)};
  ConnectOptions& complete = setup.options;
  // Validates everything before the first blocking call.
  setup.profile = std::make_shared<const Profile>(Profile::find(complete.profile));
  setup.recording = trace::recording_settings();
  static_cast<void>(read_flag("UNISONO_QUIET"));
  const Deadline deadline = Deadline::of_timeout(complete.connect_timeout_ms);
  if (!meets_over_network(complete)) {
    return meet_here(std::move(setup), deadline);
  }
  NetMeeting meeting = meet_over_network(complete, setup.ancestry.world);
  setup.ancestry.world = std::max(setup.ancestry.world, meeting.worlds);
  if (complete.bootstrap != nullptr) {  // references that may dangle later
    complete.bootstrap = nullptr;
    complete.address.clear();  // each rank had its own
  }
  return meet_across(std::move(setup), deadline, std::move(meeting));
}

}  // namespace

std::shared_ptr<World> connect(const ConnectOptions& options) {
  std::shared_ptr<World> world = connect(options, Ancestry());
  note_meeting(world->options().job, world->size());
  return world;
}

std::shared_ptr<World> meet_here(Setup setup, const Deadline& deadline, Interrupted interrupted) {
  ConnectOptions here = setup.options;
  here.connect_timeout_ms = left_ms(deadline);
  if (interrupted != nullptr) {
    here.interrupted = std::move(interrupted);
  }
  auto local = LocalWorld::join(here);
  Hosts hosts(local->rank(), local->size());
  return std::make_shared<World>(
      std::move(setup),
      Peers{.hosts = std::move(hosts), .local = std::move(local), .network = nullptr});
}

std::shared_ptr<World> meet_across(Setup setup, const Deadline& deadline, NetMeeting meeting,
                                   Interrupted interrupted) {
  const ConnectOptions& options = setup.options;
  const Hosts& hosts = meeting.hosts;
  ConnectOptions here = options;
  here.rank = hosts.local(options.rank);
  here.size = static_cast<int>(hosts.here().size());
  here.job += "/" + options.address + "/" + std::to_string(hosts.host(options.rank));
  here.file.clear();
  here.connect_timeout_ms = left_ms(deadline);
  if (interrupted != nullptr) {
    here.interrupted = std::move(interrupted);
  }
  auto local = hosts.single() ? LocalWorld::join(here, RankNames(), watch_host(meeting))
                              : join_host(here, meeting);
  std::unique_ptr<transport::Network> network;
  try {
    const std::uint32_t epoch = setup.ancestry.epoch;
    network = connect_network(meeting, options.rank, left_ms(deadline), here.interrupted,
                              [epoch](transport::Network& connected, const Error& error) {
                                tell_of_a_death(connected, epoch, error);
                              });
  } catch (const Error& error) {
    local->tell(error);
    throw;
  }
  return std::make_shared<World>(std::move(setup), Peers{.hosts = std::move(meeting.hosts),
                                                         .local = std::move(local),
                                                         .network = std::move(network),
                                                         .endpoints = std::move(meeting.endpoints),
                                                         .oversubscribed = meeting.oversubscribed});
}

std::shared_ptr<World> grow(const World& world, int size, const std::string& address) {
  ConnectOptions options = world.options();
  if (size < world.size()) {
    throw Error(ErrorCode::usage, "grow(" + std::to_string(size) + "): the world has " +
                                      std::to_string(world.size()) +
                                      " ranks already\ncall shrink() to make it smaller");
  }
  if (!world.hosts().single() && options.address.empty() && address.empty()) {
    throw Error(ErrorCode::usage,
                "grow(): the address at which rank 0 listens is unknown\npass an address of its "
                "host, such as \"10.0.0.1:29600\", the same on all ranks");
  }
  options.file.clear();
  options.job = first_name(options.job);
  options.rank = world.rank();
  options.size = size;
  options.address = address.empty() ? options.address : address;
  return connect(options, {.world = world.setup().ancestry.world + 1});
}

}  // namespace unisono::comm
