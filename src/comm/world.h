// The world of one rank: the ranks of its job, what this host and the network share with it, and
// whether it has ended. Groups are made in it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fork_detector.h"
#include "bootstrap/job_log.h"
#include "bootstrap/local_world.h"
#include "bootstrap/net_setup.h"
#include "membership/membership.h"
#include "trace/recorder.h"
#include "transport/network.h"

namespace unisono::comm {

class Fabric;
class HelperThreads;
class GroupSegments;
class LocalHost;
class Profile;
class Programs;
class ProgressThread;
class RemoteRecords;
class Rosters;
class Surroundings;
class WorldSurroundings;
class WorldWaits;

// Where a world comes from, if it was made from another.
struct Ancestry {
  int world = 0;                         // how many there were before, shrunk or grown
  std::uint32_t epoch = 0;               // how often it shrank; what is older is dropped
  int previous_size = 0;                 // of that which lost ranks
  std::vector<int> previous_ranks = {};  // by rank, what it was there
  std::vector<int> first_ranks = {};     // by rank, what it was before anybody was lost
};

// What a rank has before it meets the others.
struct Setup {
  ConnectOptions options = {};
  std::shared_ptr<const Profile> profile = nullptr;
  trace::RecordingSettings recording = {};
  Ancestry ancestry = {};
};

// What it has when it has met them.
struct Peers {
  Hosts hosts;
  std::unique_ptr<LocalWorld> local;            // the ranks of this host
  std::unique_ptr<transport::Network> network;  // to the others; nullptr: there are none
  Endpoints endpoints = {};                     // where the others found this one
  bool oversubscribed = false;  // as far as ranks of other hosts on this machine make it so
};

class World {
 public:
  // Together with the other ranks of this host. Throws resource.
  World(Setup setup, Peers peers);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return peers_.hosts.size(); }
  const Hosts& hosts() const noexcept { return peers_.hosts; }
  const ConnectOptions& options() const noexcept { return setup_.options; }
  const Setup& setup() const noexcept { return setup_; }
  Endpoints& endpoints() noexcept { return peers_.endpoints; }
  transport::Network* network() noexcept { return peers_.network.get(); }
  LocalHost& host() noexcept { return *host_; }
  Membership& membership() noexcept { return *membership_; }
  const Membership& membership() const noexcept { return *membership_; }
  GroupSegments& segments() noexcept { return *segments_; }
  Rosters& rosters() noexcept { return *rosters_; }
  // What ranks of other hosts tell; nullptr: there are none.
  RemoteRecords* remote_records() noexcept { return remote_records_.get(); }
  WorldWaits& waits() noexcept { return *waits_; }
  Surroundings& surroundings() noexcept;
  Fabric fabric() noexcept;
  Programs& programs() noexcept { return *programs_; }
  ProgressThread& progress() noexcept { return *progress_; }
  // That help with long calls; nullptr: there are none.
  HelperThreads* helpers() noexcept { return helpers_.get(); }
  // nullptr: nothing is recorded.
  trace::Recorder* recorder() noexcept { return recorder_.get(); }
  // False in the child of a fork.
  bool same_process() const noexcept { return fork_.same_process(); }
  // Throws usage in the child of a fork; and why the world has ended, if it has.
  void check_process() const;
  void check_usable() const;

 private:
  void set_up();
  void agree();
  void note_failure(const AbortRecord& record) noexcept;
  void tell_of_no_world(const Error& error) noexcept;
  void take_leave(std::optional<int> culprit) noexcept;
  void listen_once_more() noexcept;
  void report_untold_mismatch() noexcept;

  Setup setup_;
  Peers peers_;
  int rank_;
  ForkDetector fork_;
  FailureReport failure_report_;
  std::unique_ptr<trace::Recorder> recorder_;
  std::unique_ptr<LocalHost> host_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<Rosters> rosters_;
  std::unique_ptr<GroupSegments> segments_;
  std::unique_ptr<RemoteRecords> remote_records_;
  std::unique_ptr<WorldWaits> waits_;
  std::unique_ptr<WorldSurroundings> surroundings_;
  std::unique_ptr<Programs> programs_;
  // In the child of a fork it is abandoned: there is no thread to join.
  std::unique_ptr<ProgressThread> progress_;
  std::unique_ptr<HelperThreads> helpers_;  // likewise
};

}  // namespace unisono::comm
