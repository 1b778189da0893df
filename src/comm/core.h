// One rank's end of one group: everything that a Communicator does.
//
// Collectives of a group run one after the other, in the order of the calls, which is the same on
// all ranks. A blocking call runs in its thread with no queue and no lock while nothing
// asynchronous is pending. Otherwise operations wait in the queue, and whoever waits drives it, or
// the world's progress thread when nobody does.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "comm/lanes.h"
#include "comm/point_to_point.h"
#include "comm/progress.h"
#include "comm/waiter.h"
#include "comm/world.h"
#include "diagnose/flight_recorder.h"
#include "engine/executor.h"
#include "plan/planner.h"
#include "unisono/communicator.hpp"

namespace unisono::detail {

// An operation under way. Guarded by the core's driving mutex, but for `done`.
struct RequestState {
  Core* core = nullptr;  // kept alive by the user's handle, which is never the progress thread's
  std::shared_ptr<const comm::Prepared> prepared;  // a collective
  comm::Transfer transfer;                         // or a send or recv, where prepared is null
  Call call = {};
  std::vector<std::size_t> lists = {};  // owns what the spans of a v-form's call view
  std::uint64_t salt = 0;               // of its signature: what went into a fused operation
  bool waited = false;
  std::atomic<bool> done = false;
  std::unique_ptr<Error> error;
  std::function<void(const Error*)> on_done;
};

struct PlanState {
  std::shared_ptr<Core> core;
  std::shared_ptr<const comm::Prepared> prepared;
  Call call;
};

struct RegionState {
  ~RegionState();
  std::shared_ptr<comm::World> world;
  std::uint32_t number = 0;
  std::byte* base = nullptr;
  std::size_t bytes = 0;
  std::size_t usable = 0;  // of an allocation: what was asked for
  bool adopted = false;
};

class Core final : public std::enable_shared_from_this<Core>, private comm::Driven {
 public:
  // The world's first group.
  static std::shared_ptr<Core> of_world(std::shared_ptr<comm::World> world);
  // A group of `members` (world ranks), of which this rank is number `rank`. The memory is that of
  // those of them that are on this host.
  Core(std::shared_ptr<comm::World> world, std::shared_ptr<shm::Mapping> segment, std::byte* memory,
       std::vector<int> members, int rank, std::uint64_t id);
  ~Core();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(members_.size()); }
  int hosts() const;
  comm::World& world() noexcept { return *world_; }
  const std::vector<int>& members() const noexcept { return members_; }  // ranks of the world

  void run(const Call& call);
  std::shared_ptr<RequestState> run_async(const Call& call, std::uint64_t salt = 0);
  std::unique_ptr<PlanState> plan(const Call& call);
  Explanation explain(const Call& call);
  void start(const PlanState& plan);
  std::shared_ptr<RequestState> start_async(const PlanState& plan);
  std::shared_ptr<RequestState> transfer_async(const comm::Transfer& transfer, int timeout_ms = -1);
  // One or more at once; they are used up.
  void transfer(std::span<comm::Transfer> transfers, int timeout_ms);

  // Waits; throws what ended the operation.
  void wait(RequestState& request, int timeout_ms);
  bool test(RequestState& request);
  void on_done(RequestState& request, std::function<void(const Error*)> tell);
  int source(const RequestState& request) const;

  void group(const std::function<void()>& body);
  bool grouping() const noexcept { return grouping_; }  // inside group(), which waits for all
  std::shared_ptr<Core> split(int color, int key);
  std::shared_ptr<Core> subgroup(std::span<const int> members, std::uint64_t id);
  void abort(std::string_view reason);
  std::optional<Error> failure();
  std::shared_ptr<Core> shrink(const ShrinkOptions& options);
  std::shared_ptr<Core> grow(int size, const std::string& address);
  const std::vector<int>& previous_ranks() const noexcept {
    return world_->origin().previous_ranks;
  }
  std::unique_ptr<RegionState> allocate(std::size_t bytes);
  std::unique_ptr<RegionState> adopt(std::span<std::byte> memory);

 private:
  void check_process() const;  // it is no fork of the one that joined
  void check_usable() const;
  void check_whole(const char* call) const;  // this is no group of a part of the world
  void check_blocking() const {
    if (!world_->same_process() || world_->aborted() || grouping_) {
      refuse_blocking();
    }
  }
  [[noreturn]] void refuse_blocking() const;
  // A blocking call runs in its thread with no lock while nothing asynchronous is pending: then it
  // is alone, and a second thread that comes meanwhile is refused. Collectives and transfers have
  // nothing in common but the world, and do not refuse each other.
  class Alone {
   public:
    Alone(const Core& core, std::atomic<bool>& used) : used_(used) {
      if (used.exchange(true)) {
        core.refuse_second_thread();
      }
      alone_ = core.pending_.load() == 0;
      if (!alone_) {
        used.store(false, std::memory_order_release);
      }
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    ~Alone() {
      if (alone_) {
        used_.store(false, std::memory_order_release);
      }
    }
    explicit operator bool() const noexcept { return alone_; }

   private:
    std::atomic<bool>& used_;
    bool alone_ = false;
  };
  // The planner is used by a blocking call without the lock: who plans counts as pending meanwhile.
  class Planning {
   public:
    explicit Planning(Core& core) : core_(core), lock_(core.driving_) {
      core.announce(core.collecting_);
    }
    Planning(const Planning&) = delete;
    Planning& operator=(const Planning&) = delete;
    ~Planning() { core_.pending_.fetch_sub(1, std::memory_order_release); }

   private:
    Core& core_;
    std::lock_guard<std::mutex> lock_;
  };
  // Something that is pending from now on, unless a blocking call runs alone: then it throws.
  void announce(const std::atomic<bool>& used) {
    pending_.fetch_add(1);
    if (used.load()) {
      pending_.fetch_sub(1);
      refuse_second_thread();
    }
  }
  [[noreturn]] void refuse_second_thread() const;
  void execute(const comm::Prepared& prepared, const Call& call);
  void execute(std::span<comm::Transfer> transfers, int timeout_ms);
  void record_begin(const comm::Prepared& prepared);
  void record_begin(comm::Transfer& transfer);
  void record_end(const comm::Transfer& transfer);
  void begin(const comm::Prepared& prepared, const Call& call, std::uint64_t salt = 0);
  void finish(const comm::Prepared& prepared, const Call& call);
  void wait_blocking(const comm::Prepared& prepared, int timeout_ms);
  void wait_until_finished(const comm::Prepared& prepared, int timeout_ms);
  int effective_timeout(int timeout_ms) const;
  void check_transfer(const comm::Transfer& transfer) const;
  comm::FlightRecorder& my_flight_recorder() noexcept {
    return *flight_recorders_[static_cast<std::size_t>(rank_)];
  }
  // What a rank is doing; nullptr: it is on another host, and has told nothing.
  const comm::FlightRecorder* flight_recorder(int rank) const noexcept;
  // Tells the ranks of other hosts what this one is in. `ask`: those that wait are to tell too.
  void tell_others(bool ask) noexcept;
  // Takes in what they tell, and answers who asks. REQUIRES: there are ranks of other hosts.
  void hear_others() noexcept;
  // As flight_recorder(), of a rank of another host: waits a little until it has told.
  const comm::FlightRecorder* await_flight_recorder(
      int rank, const std::function<bool(const comm::FlightRecorder&)>& enough);
  std::vector<int> unheard(std::int64_t since_ns) const;
  std::vector<int> await_unheard(std::int64_t since_ns);
  int waits_for(int rank, std::int64_t since_ns) const;
  struct Culprit {
    int rank = -1;
    pid_t stopped = 0;  // its process, if it is stopped
  };
  Culprit find_culprit(int waited_for, std::int64_t since_ns) const;
  // What goes wrong: each tells the world why, which ends every wait.
  std::string name(int rank) const;  // of the group: "rank 5 (1 of its group)"
  void raise_fault();
  void raise_disagreement(int peer, const comm::OperationRecord& theirs);
  void raise_timeout(double seconds);
  void raise_transfer_fault();
  void raise_transfer_timeout(const comm::Transfer& transfer, double seconds);
  void look_around();
  // For those who look from outside. end_wait() costs nothing where nothing was noted.
  // `waiting.peer`: of this group.
  void note_wait(comm::Waiting waiting) noexcept;
  void note_wait(const comm::Transfer& transfer) noexcept;
  void end_wait() noexcept {
    if (notes_wait_.load(std::memory_order_relaxed)) {
      notes_wait_.store(false, std::memory_order_relaxed);
      comm::end_wait(my_flight_recorder());
    }
  }
  // `leaver`: the peer that this wait has seen to have left, -1 at first.
  void look_for_leaver(int peer, int& leaver);
  void raise_left(int peer);
  [[noreturn]] void throw_abort(const comm::Prepared* prepared);
  // A step that the others wait for: if this rank cannot do it, they hear of it.
  template <typename Step>
  auto or_tell_all(const Step& step) {
    try {
      return step();
    } catch (const std::exception& error) {
      world_->raise(error);
    }
    throw_abort(nullptr);
  }

  std::shared_ptr<RequestState> enqueue(const std::shared_ptr<RequestState>& request);
  // Moves everything pending by one poll. REQUIRES: driving_ is held.
  bool drive();
  bool drive_all();
  bool drive_and_tell();  // takes the lock itself
  static void tell(const comm::Finished& finished);
  bool wants_driving() const noexcept override {
    return pending_.load(std::memory_order_relaxed) != 0 &&
           waiters_.load(std::memory_order_relaxed) == 0;
  }
  bool drive_pending(comm::Finished& finished) override;
  void look_around_pending() override;
  void check_deadlines();
  std::shared_ptr<RequestState> handle(const std::shared_ptr<RequestState>& request);
  void complete(RequestState& request, std::unique_ptr<Error> error);
  void fail_all();

  std::shared_ptr<comm::World> world_;
  std::shared_ptr<shm::Mapping> segment_;  // of a split group; the first group lies in the world's
  std::byte* memory_;
  std::vector<int> members_;
  int rank_;
  std::uint64_t id_;
  std::uint32_t splits_ = 0;
  std::vector<comm::FlightRecorder*> flight_recorders_;  // by rank; nullptr: on another host
  comm::Lanes collective_lanes_;
  engine::Executor executor_;
  // Of send and recv: made at the first one, as most groups have none.
  struct Transfers {
    Transfers(const Core& core);
    comm::Lanes lanes;
    comm::PointToPoint queue;
    trace::TraceWriter writer;
  };
  comm::PointToPoint& transfers() {
    if (transfers_ == nullptr) {
      transfers_ = std::make_unique<Transfers>(*this);
    }
    return transfers_->queue;
  }
  std::unique_ptr<Transfers> transfers_;
  comm::Planner planner_;
  std::uint64_t sequence_ = 0;  // of the latest operation
  std::uint64_t signature_ = 0;
  std::atomic<bool> notes_wait_ = false;  // transfers and a collective may be of two threads
  std::set<int> leavers_;  // ranks of other hosts that had left when they were waited for
  int looks_ = 0;          // around, in the operation `looked_in_`
  std::uint64_t looked_in_ = 0;
  std::vector<std::byte> scratch_;
  std::byte barrier_token_[2] = {};

  std::mutex driving_;  // guards the queue and all above while pending_ is not 0
  std::deque<std::shared_ptr<RequestState>> queue_;    // collectives; the first one runs
  bool running_ = false;                               // the first has begun
  std::vector<std::shared_ptr<RequestState>> moving_;  // sends and receives
  std::atomic<int> pending_ = 0;
  std::atomic<bool> collecting_ = false;    // a blocking collective runs alone
  std::atomic<bool> transferring_ = false;  // a blocking send or recv does
  std::atomic<int> waiters_ = 0;
  comm::Finished finished_;                              // to be told when the lock is free
  std::chrono::steady_clock::time_point progressed_at_;  // as far as the progress thread knows
  bool listed_ = false;                                  // the progress thread knows this group
  bool grouping_ = false;                                // inside group(): operations are collected
  std::vector<std::shared_ptr<RequestState>> grouped_;
};

}  // namespace unisono::detail
