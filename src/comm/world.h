// The world of one rank: its peers, the memory that those of this host share, the connections to
// the others, and the one abort word of each host.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/wait_policy.h"
#include "bootstrap/end_reason.h"
#include "bootstrap/hosts.h"
#include "bootstrap/local_world.h"
#include "bootstrap/net.h"
#include "comm/lanes.h"
#include "comm/progress.h"
#include "comm/waiter.h"
#include "diagnose/remote_records.h"
#include "membership/agreement.h"
#include "membership/liveness.h"
#include "membership/meet_again.h"
#include "plan/profile.h"
#include "plan/programs.h"
#include "trace/recorder.h"
#include "transport/shm/bells.h"
#include "transport/shm/pool.h"
#include "transport/shm/regions.h"
#include "transport/shm/segment.h"
#include "transport/shm/shm_transport.h"
#include "transport/tcp/connections.h"
#include "unisono/error.hpp"

namespace unisono::comm {

class World final : public Surroundings {
 public:
  static std::shared_ptr<World> connect(const ConnectOptions& options);
  // Where a world comes from, if it was made from another.
  struct Origin {
    int world = 0;                         // how many there were before, shrunk or grown
    std::uint32_t epoch = 0;               // how often it shrank; what is older is dropped
    std::vector<int> previous_ranks = {};  // by rank, what it was there
    std::vector<int> first_ranks = {};     // by rank, what it was before anybody was lost
  };
  // What a rank has before it meets the others.
  struct Given {
    std::shared_ptr<const Profile> profile;
    trace::RecordingSettings recording;
    Origin origin = {};
    // While they meet, in place of that of the options.
    std::function<bool()> interrupted = nullptr;
  };
  // What a world is made from.
  struct Parts {
    Hosts hosts;
    std::unique_ptr<LocalWorld> local;  // the ranks of this host
    tcp::Channels streams = {};         // to the others, by rank; empty where there are none
    Door door = {};                     // where the others found this one
    bool crowded = false;               // as far as ranks of other hosts on this machine make it so
  };
  World(const ConnectOptions& options, Given given, Parts parts);
  // After a failure: a world of the ranks that are still there, in their old order. Blocks until
  // each of the others has called too or is known to be gone, at most `timeout_ms` (0: for ever;
  // negative: as to connect). Errors: evicted.
  std::shared_ptr<World> shrink(int timeout_ms, bool quorum);
  // A world of more ranks: those of this one, and new ones that connect() with the first job's
  // name.
  std::shared_ptr<World> grow(int size, const std::string& address);
  const Origin& origin() const noexcept { return origin_; }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return hosts_.size(); }
  const Hosts& hosts() const noexcept { return hosts_; }
  const ConnectOptions& options() const noexcept { return options_; }
  // What the lanes of a group are made from.
  Roads roads() noexcept {
    return {.hosts = &hosts_,
            .host = &host_,
            .connections = connections_.get(),
            .epoch = origin_.epoch};
  }
  // Of ranks of other hosts; nullptr: there are none.
  RemoteRecords* remote_records() noexcept { return remote_records_.get(); }
  bool same_process_as(int rank) const noexcept {
    return hosts_.is_here(rank) && host_.same_process[static_cast<std::size_t>(hosts_.local(rank))];
  }
  shm::Regions& regions() noexcept { return *regions_; }
  // The segment of the first group: of all ranks of this host.
  std::byte* first_group() const noexcept;
  // More ranks than CPUs that they may use, on this host: waiting must give way at once.
  bool crowded() const noexcept { return crowded_; }
  const WaitPolicy& wait_policy() const noexcept override { return wait_policy_; }
  Programs& programs() noexcept { return programs_; }
  const Profile& profile() const noexcept { return *profile_; }
  // The segment of a new group, on each host: one member offers it, the others there take it. The
  // offer must stay until all have taken it; who is in the same process shares the offered mapping.
  struct SegmentOffer {
    std::uint32_t number = 0;
    std::uint32_t reserved = 0;
    const std::shared_ptr<shm::Mapping>* mapping = nullptr;  // in the offerer's process
  };
  SegmentOffer offer_segment(std::span<const int> members, std::size_t bytes,
                             std::shared_ptr<shm::Mapping>& mapping);
  std::shared_ptr<shm::Mapping> take_segment(int offerer, const SegmentOffer& offer);
  // The same without any other exchange: the first of `members` makes the segment of the group
  // that all of them know by `id`, the others wait for it. None may be a thread of this process.
  std::shared_ptr<shm::Mapping> meet_segment(std::span<const int> members, std::size_t bytes,
                                             std::uint64_t id);
  ProgressThread& progress() noexcept { return *progress_; }
  // nullptr: nothing is recorded.
  trace::Recorder* recorder() noexcept { return recorder_.get(); }

  bool aborted() const noexcept override {
    return record_->state.load(std::memory_order_acquire) != 0;
  }
  // The same after reading memory of peers, who may have changed it since they heard of an abort.
  bool aborted_meanwhile() const noexcept {
    std::atomic_thread_fence(std::memory_order_acquire);
    return aborted();
  }
  // The first reason stays, on each host; everybody is woken.
  void raise(ErrorCode code, int culprit, const std::string& text) noexcept;
  // What ended this rank's part in an operation ends it for all: they would wait for it.
  void raise(const std::exception& error) noexcept override;
  // REQUIRES: aborted().
  [[noreturn]] void throw_abort(ErrorContext context) const;
  // Looks for deaths; then what throw_abort() would throw, if it would, without waiting. Any
  // thread.
  std::optional<Error> failure();
  // Looks for dead peers, and for what other hosts say; raises peer_lost. Cheap, but a system call.
  void look_for_deaths() noexcept override;
  // ConnectOptions::interrupted; raises aborted.
  void ask_whether_to_go_on() noexcept override;
  // Whether a rank has destroyed its world in good order: it sends nothing any more.
  bool has_left(int rank) noexcept {
    return hosts_.is_here(rank)
               ? bells_->bell(hosts_.local(rank)).left.load(std::memory_order_acquire) != 0
               : connections_->has_left(rank);
  }
  // Of a rank of this host: 0 if its process runs, else what to continue (SIGCONT).
  pid_t stopped_process(int rank) const;
  int longest_sleep_us() const noexcept override { return bells_->longest_sleep_us(); }
  bool sleep(const std::function<bool()>& look, int timeout_us) override;
  // False in the child of a fork. One load: the page is wiped by the fork.
  bool same_process() const noexcept { return *fork_guard_ != 0; }

 private:
  void exchange_memory();
  void exchange_bells();
  void agree_on_number();
  void find_who_can_fetch();
  void find_crowding();
  void choose_wait_policy();
  void introduce() noexcept;  // to those who look from outside
  void guard_against_fork();
  bool announce(std::uint32_t number, std::size_t bytes, int fd) noexcept;
  void drain_announcements();
  void wait_to_meet(int peer, const std::function<bool()>& met);
  // False: there is a reason already.
  bool record_abort(ErrorCode code, int culprit, int reporter, const std::string& text) noexcept;
  Life& life(int local_rank) const noexcept;
  bool is_ending(int local_rank) noexcept;
  std::optional<Death> find_ending();
  void note_abort() const noexcept;
  Error read_abort(ErrorContext context) const;
  int first_rank(int rank) const;  // what it was before anybody was lost
  void look_for_local_death();
  void listen_to_others() noexcept;
  void set_up();
  void tell_of_no_world(const Error& error) noexcept;
  void abort_across(ErrorCode code, int culprit, const std::string& text) noexcept;
  void take_leave(bool is_aborted, int culprit) noexcept;
  static std::shared_ptr<World> connect(const ConnectOptions& options, Origin origin);
  static std::shared_ptr<World> meet_here(const ConnectOptions& options, const Deadline& deadline,
                                          Given given);
  static std::shared_ptr<World> meet_across(const ConnectOptions& options, const Deadline& deadline,
                                            NetMeeting meeting, Given given);
  bool is_dead_here(int rank);
  bool has_left_here(int rank) noexcept;
  int patience_with(int rank);
  // The meeting of those that go on, from the answer to the end of it.
  struct Reunion {
    std::vector<int> ranks = {};   // that go on
    std::uint64_t mark = 0;        // of the answer
    std::set<int> unsettled = {};  // of other hosts, whose connection says nothing of their life
  };
  bool has_ended(int rank, const Reunion& reunion);
  bool is_meeting_interrupted(Reunion& reunion);
  Given given_for(const std::shared_ptr<Reunion>& reunion);
  bool has_given_up(int place, World& fresh, const Reunion& reunion, bool& is_settled);
  void await_others(World& fresh, const Reunion& reunion, const Deadline& deadline);
  std::shared_ptr<World> shrink_here(const Deadline& deadline, bool quorum,
                                     const std::shared_ptr<Reunion>& reunion);
  std::shared_ptr<World> shrink_across(const Deadline& deadline, bool quorum, Survivors& survivors,
                                       const std::shared_ptr<Reunion>& reunion);

  ConnectOptions options_;
  std::shared_ptr<const Profile> profile_;
  std::unique_ptr<trace::Recorder> recorder_;
  int rank_;
  Hosts hosts_;
  std::unique_ptr<LocalWorld> local_;
  Door door_;
  bool crowded_ = false;
  Origin origin_;
  const LauncherWords launcher_words_;
  bool shrunk_ = false;
  WaitPolicy wait_policy_;
  struct Unmap {
    void operator()(volatile char* page) const noexcept;
  };
  std::unique_ptr<volatile char, Unmap> fork_guard_;
  // In the child of a fork it is abandoned: there is no thread to join.
  std::unique_ptr<ProgressThread> progress_ = std::make_unique<ProgressThread>(*this);
  std::mutex local_use_;  // guards local_ after the set-up: communicators of several threads look
                          // for deaths
  std::uint32_t next_segment_ = 1;
  std::map<std::pair<int, std::uint32_t>, std::shared_ptr<shm::Mapping>>
      segments_;                                                                // not yet taken
  std::map<std::pair<int, std::uint64_t>, std::shared_ptr<shm::Mapping>> met_;  // the same, by id
  std::shared_ptr<shm::Mapping> memory_;
  AbortRecord* record_ = nullptr;
  std::unique_ptr<shm::Bells> bells_;
  std::unique_ptr<Lifeline> lifeline_;  // nullptr: all ranks of this host are of this process
  std::unique_ptr<RollCall> roll_call_;
  std::unique_ptr<shm::Pool> pool_;
  std::unique_ptr<shm::Regions> regions_;
  shm::TransportRegistry registry_;
  Programs programs_;
  shm::ShmContext host_;  // all numbers in it are those of ranks on this host
  std::unique_ptr<tcp::Connections> connections_;
  std::unique_ptr<RemoteRecords> remote_records_;
  std::vector<UniqueFd> wakes_;  // of the ranks of this host: what to write to, to wake them
  std::atomic<int> troubles_seen_ = 0;
  std::atomic<std::int64_t> unwritten_since_ms_ = 0;  // when failure() first found a reason begun
};

}  // namespace unisono::comm
