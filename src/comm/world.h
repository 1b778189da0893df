// The world of one rank: the ranks of its job, the resources that this rank shares with them on
// this host and over the network, and the state that ends the world. Groups are made in a world.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
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
class WaitEnvironment;
class WorldWaitEnvironment;
class WorldWaits;
struct Standing;

// The relation of a world to the world from which it was made.
struct Ancestry {
  int world = 0;                         // number of worlds before, shrunk or grown
  std::uint32_t epoch = 0;               // number of shrinks; messages of older epochs are dropped
  int previous_size = 0;                 // size of the world that lost ranks
  std::vector<int> previous_ranks = {};  // each rank's number in that world
  std::vector<int> first_ranks = {};     // each rank's number before any rank was lost
};

// The state of a rank before it connects to the others.
struct Setup {
  ConnectOptions options = {};
  std::shared_ptr<const Profile> profile = nullptr;
  trace::RecordingSettings recording = {};
  Ancestry ancestry = {};
};

// The connections to the other ranks.
struct Peers {
  Hosts hosts;
  std::unique_ptr<LocalWorld> local;            // the ranks on this host
  std::unique_ptr<transport::Network> network;  // to ranks on other hosts; nullptr: there are none
  Endpoints endpoints = {};                     // this rank's address as seen by the others
  bool oversubscribed = false;  // as far as ranks on other "hosts" of this machine cause it
};

class World {
 public:
  // Collective over the ranks on this host. Throws resource.
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
  // Records from ranks on other hosts; nullptr if there is only one host.
  RemoteRecords* remote_records() noexcept { return remote_records_.get(); }
  WorldWaits& waits() noexcept { return *waits_; }
  WaitEnvironment& wait_environment() noexcept;
  // Describes a caller's wait for the deadlock search. `pending` is the number of pending
  // operations that belong to this wait. Must not be called while a group's lock is held.
  Standing standing(std::chrono::steady_clock::time_point since, int pending) const;
  Fabric fabric() noexcept;
  Programs& programs() noexcept { return *programs_; }
  ProgressThread& progress() noexcept { return *progress_; }
  // Helper threads for long calls; nullptr if there are none.
  HelperThreads* helpers() noexcept { return helpers_.get(); }
  // nullptr if nothing is recorded.
  trace::Recorder* recorder() noexcept { return recorder_.get(); }
  // Returns false in a forked child.
  bool same_process() const noexcept { return fork_.same_process(); }
  // Throws usage in a forked child, and the error that has ended the world, if there is one.
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
  // A rank that calls from several threads never counts as deadlocked: while one thread waits,
  // another may compute before it makes the missing call.
  const std::thread::id creator_ = std::this_thread::get_id();
  mutable std::atomic<bool> other_threads_wait_ = false;
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
  std::unique_ptr<WorldWaitEnvironment> wait_environment_;
  std::unique_ptr<Programs> programs_;
  // A forked child abandons it, because the child has no thread to join.
  std::unique_ptr<ProgressThread> progress_;
  std::unique_ptr<HelperThreads> helpers_;  // likewise
};

}  // namespace unisono::comm
