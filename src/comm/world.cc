#include "comm/world.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "base/deadline.h"
#include "base/env.h"
#include "base/json_text.h"
#include "bootstrap/local_host.h"
#include "comm/fabric.h"
#include "comm/group_segments.h"
#include "comm/helper_threads.h"
#include "comm/progress.h"
#include "comm/world_wait_environment.h"
#include "diagnose/remote_records.h"
#include "diagnose/rosters.h"
#include "diagnose/world_waits.h"
#include "membership/meet_again.h"
#include "membership/membership.h"
#include "select/profile.h"
#include "select/programs.h"

namespace unisono::comm {
namespace {

// Number of polls before a rank sleeps in the network. Each poll is a system call, so this many
// polls take longer than a wake-up.
constexpr int kLooksOverNetwork = 100;
// Time for a slow peer to read the last message.
constexpr int kLeaveMs = 2000;
constexpr int kLostHostMs = 200;  // for the culprit's host, which may be lost with it
constexpr int kSilentMs = 500;    // a separated network loses more than the culprit

WaitPolicy choose_wait_policy(const Setup& setup, const Hosts& hosts, bool oversubscribed) {
  WaitPolicy policy = built_in_wait(oversubscribed);
  if (!hosts.single()) {
    policy.spin = std::min(policy.spin, kLooksOverNetwork);
  } else if (const cost::WaitChoice* found =
                 setup.profile->choices().find_wait(hosts.size(), oversubscribed)) {
    policy = found->policy;
  }
  const WaitOptions& asked = setup.options.wait;
  return {.spin = asked.spin >= 0 ? asked.spin : policy.spin,
          .yield_us = asked.yield_us >= 0 ? asked.yield_us : policy.yield_us};
}

}  // namespace

World::World(Setup setup, Peers peers)
    : setup_(std::move(setup)),
      peers_(std::move(peers)),
      rank_(peers_.hosts.here()[static_cast<std::size_t>(peers_.local->rank())]),
      failure_report_(first_name(setup_.options.job)),
      programs_(std::make_unique<Programs>()) {
  try {
    set_up();
  } catch (const Error& error) {
    tell_of_no_world(error);
    throw;
  }
  recorder_ = trace::Recorder::open_for(rank_, setup_.recording);
  if (recorder_ != nullptr) {
    recorder_->introduce(rank_, size(), options().job, setup_.ancestry.first_ranks,
                         setup_.ancestry.world);
  }
  membership_->abort().observe([this](const AbortRecord& record) { note_failure(record); });
  failure_report_.tell_recovery();
}

void World::note_failure(const AbortRecord& record) noexcept {
  if (recorder_ != nullptr) {
    recorder_->note_abort(static_cast<ErrorCode>(record.code), record.rank, record.reporter,
                          record.text);
  }
  if (!membership_->shrunk()) {
    const std::vector<int>& first_ranks = setup_.ancestry.first_ranks;
    const bool same = record.rank < 0 || first_ranks.empty();
    failure_report_.tell(same ? record.rank : first_ranks[static_cast<std::size_t>(record.rank)],
                         record.text);
  }
}

// Sets up the ranks on this host. Ranks on other hosts do not wait for this.
void World::set_up() {
  if (network() != nullptr) {
    network()->begin_epoch(setup_.ancestry.epoch);
  }
  host_ = std::make_unique<LocalHost>(
      *peers_.local, options().job, options().threads, peers_.oversubscribed,
      [this](const std::exception& error) { membership_->abort().raise(error); });
  membership_ =
      std::make_unique<Membership>(hosts(), *host_, network(), rank_, setup_.ancestry.first_ranks);
  AbortWord& abort = membership_->abort();
  rosters_ = std::make_unique<Rosters>(hosts(), *host_, network(), abort, rank_);
  segments_ =
      std::make_unique<GroupSegments>(hosts(), *host_, membership_->watch(), abort, *rosters_);
  wait_environment_ = std::make_unique<WorldWaitEnvironment>(
      options(), rank_, *host_, network(), *membership_, *rosters_,
      choose_wait_policy(setup_, hosts(), host_->oversubscribed()));
  progress_ = std::make_unique<ProgressThread>(*wait_environment_);
  if (network() != nullptr) {
    remote_records_ = std::make_unique<RemoteRecords>(*network(), rank_, size());
    host_->wake_through(*network());
  }
  waits_ = std::make_unique<WorldWaits>(
      hosts(), *host_, remote_records_.get(),
      parse_deadlock_policy(read_env("UNISONO_DEADLOCK").value_or("")));
  if (options().threads > 1) {
    helpers_ = std::make_unique<HelperThreads>(options().threads - 1, !host_->oversubscribed());
  }
  agree();  // no rank sends before every rank can be woken
}

Standing World::standing(std::chrono::steady_clock::time_point since, int pending) const {
  const std::int64_t since_ns = std::chrono::nanoseconds(since.time_since_epoch()).count();
  if (std::this_thread::get_id() != creator_) {
    other_threads_wait_.store(true, std::memory_order_relaxed);
  }
  return {.since_ns = since_ns,
          .alone = !other_threads_wait_.load(std::memory_order_relaxed) &&
                   waits_->is_long(since_ns) && waits_->count() <= 1 &&
                   progress_->pending() == pending};
}

World::~World() {
  if (!same_process()) {
    static_cast<void>(progress_.release());        // NOLINT(bugprone-unused-return-value)
    static_cast<void>(helpers_.release());         // NOLINT(bugprone-unused-return-value)
    static_cast<void>(remote_records_.release());  // NOLINT(bugprone-unused-return-value)
    static_cast<void>(rosters_.release());         // NOLINT(bugprone-unused-return-value)
    static_cast<void>(peers_.network.release());   // NOLINT(bugprone-unused-return-value)
    static_cast<void>(membership_.release());      // NOLINT(bugprone-unused-return-value)
    return;
  }
  progress_.reset();
  AbortWord& abort = membership_->abort();
  abort.tell_observer();
  abort.pass_on();
  // From here on, a rank that is gone has left properly. If ranks disagree, that is still an error.
  abort.observe([this](const AbortRecord& record) {
    if (static_cast<ErrorCode>(record.code) == ErrorCode::mismatch) {
      note_failure(record);
    }
  });
  listen_once_more();
  take_leave(abort.culprit());
  report_untold_mismatch();
  host_->leave();
}

// Receives data once more before this rank announces that it leaves. If another rank has already
// closed its end, sending resets the connection, and data that the other rank sent before would be
// lost.
void World::listen_once_more() noexcept {
  try {
    membership_->watch().listen();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it is leaving
  }
}

// If ranks disagree in their last calls, no later call can report it to the program. On different
// hosts, two ranks that do not wait for each other learn it from each other's farewells.
void World::report_untold_mismatch() noexcept {
  try {
    AbortWord& abort = membership_->abort();
    if (remote_records_ != nullptr && !abort.is_set()) {
      network()->progress();
      remote_records_->listen();
      if (const std::string what = remote_records_->last_disagreement(); !what.empty()) {
        abort.raise_here(ErrorCode::mismatch, what);
      }
    }
    const std::optional<Error> failure = abort.complete();
    if (!failure || membership_->shrunk()) {
      return;
    }
    abort.tell_observer();
    if (failure->code() == ErrorCode::mismatch && !abort.note_told()) {
      std::fprintf(stderr,
                   "unisono: rank %d leaves a world in which ranks made different calls: %s\n",
                   rank_, failure->what());
    }
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): it is leaving
  }
}

// Waits until the last message has reached the peers' systems. If a connection is closed while
// bytes wait in either direction, it is reset, and bytes in transit are lost. A rank that does not
// learn why the world has ended would blame this rank. The rank at fault need not be notified.
void World::take_leave(std::optional<int> culprit) noexcept {
  if (network() == nullptr) {
    return;
  }
  network()->leave(culprit || remote_records_ == nullptr ? std::string()
                                                         : remote_records_->farewell());
  const Deadline host_deadline = Deadline::after_ms(kLostHostMs);
  const int lost_rank = culprit.value_or(-1);
  const auto lost = [&](int rank) {
    return lost_rank >= 0 && (rank == lost_rank || (hosts().host(rank) == hosts().host(lost_rank) &&
                                                    host_deadline.passed()));
  };
  const Deadline deadline = Deadline::after_ms(kLeaveMs);
  while (!network()->delivered(lost, culprit ? kSilentMs : kLeaveMs) && !deadline.passed()) {
    network()->wait(1000);
  }
}

// Reports to ranks on other hosts, which may be in their world already, why this rank will never
// join that world.
void World::tell_of_no_world(const Error& error) noexcept {
  peers_.local->tell(error);
  if (network() == nullptr) {
    return;
  }
  const int culprit = error.context().peer >= 0 ? error.context().peer : rank_;
  const std::string who = culprit == rank_ ? "rank " + std::to_string(rank_) + ": " : "";
  tell_hosts_of_abort(*network(), error.code(), culprit, who + std::string(error.message()));
  take_leave(culprit);
}

// Agrees on the number of worlds that the job has had, which a new rank in a growing job does not
// know. Over the network, the cards contain it.
void World::agree() {
  struct SharedSettings {
    int world;
    int threads;
    double max_error;
  };
  const SharedSettings mine{.world = setup_.ancestry.world,
                            .threads = options().threads,
                            .max_error = options().max_error};
  const auto all = host_->all_gather(std::as_bytes(std::span(&mine, 1)));
  for (std::size_t peer = 0; peer < all.size(); ++peer) {
    SharedSettings theirs = {};
    std::memcpy(&theirs, all[peer].data(), sizeof(theirs));
    setup_.ancestry.world = std::max(setup_.ancestry.world, theirs.world);
    const auto expect_same = [&](std::string_view name, auto here, auto there) {
      if (here != there) {
        throw Error(ErrorCode::config,
                    std::string(name) + " is " + json_number(here) + " on rank " +
                        std::to_string(rank_) + " and " + json_number(there) + " on rank " +
                        std::to_string(hosts().here()[peer]) + "\ngive all ranks the same number",
                    {.rank = rank_});
      }
    };
    expect_same("UNISONO_THREADS", mine.threads, theirs.threads);
    expect_same("UNISONO_MAX_ERROR", mine.max_error, theirs.max_error);
  }
}

Fabric World::fabric() noexcept {
  return {hosts(), host_->context(), network()};
}

WaitEnvironment& World::wait_environment() noexcept {
  return *wait_environment_;
}

void World::check_process() const {
  if (!same_process()) {
    throw Error(ErrorCode::usage,
                "this process is a fork of the one that joined the world\n"
                "a communicator cannot be used in the child: exec a program there, or fork before "
                "connecting",
                {.rank = rank_});
  }
}

void World::check_usable() const {
  check_process();
  if (membership_->abort().is_set()) {
    membership_->abort().throw_reason({.rank = rank_});
  }
}

}  // namespace unisono::comm
