// The waits of each rank, in any group, to find ranks that wait for each other in different calls,
// which no single group shows. All ranks here are world ranks.
//
// A deadlock is proved by a circle of waits. Rank r waits for a message, or for room, from rank p,
// and p waits alone: its caller waits in one call, and nothing else of p is pending. Let F(r, p)
// be: r gets what it waits for only after p has got what p waits for. r notes F(r, p), with the
// names of the two waits (Behind), once it is certain:
//   - p sends nothing more to r before p advances. For p in another call, because p makes no call
//     before that one ends, and has not entered the collective of r. For p in the collective of r,
//     because p waits for one rank only (for_one), and what that rank sends is the first thing that
//     lets p advance.
//   - Nothing that p has sent is in transit, and r has seen all of it. Within a host r polls after
//   it
//     has seen p's wait, and a wait is published after what its rank sent. Between hosts a report
//     may overtake data, so r asks p, and compares the frames of both directions
//     (transport::Frames). p looks twice, with a poll between the looks and without progress: it
//     reports the frames that it had received by the first look, and has sent by the second. r has
//     received just as many as p has sent, then polls without getting what it waits for, and has
//     sent p just as many as p has received. So p has seen all of r's frames, and reacts to none of
//     them any more.
// F is about the order of two events and stays true. If notes lead from a wait back to itself, each
// of its ranks gets what it waits for only after itself: never, no matter when each note was made.
// A rank that computes, that has something else pending or that makes progress has no such wait.
// promela/deadlock.pml is the model of this protocol between hosts.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/deadlock_policy.h"
#include "diagnose/flight_recorder.h"
#include "diagnose/remote_records.h"

namespace unisono::comm {

class Hosts;
class LocalHost;

// A caller's wait, as its Waiter knows it.
struct Standing {
  std::int64_t since_ns = 0;  // of the last progress; 0: no caller waits
  bool alone = false;         // it is long, and nothing else of this rank is pending
};

// The search for a deadlock during one wait.
struct Standstill {
  std::int64_t seen_ns = 0;    // the name of the peer's wait, if nothing was in transit then
  std::int64_t looked_ns = 0;  // when the circle was looked for
  std::int64_t asked_ns = 0;   // when other hosts were asked
  std::uint64_t answers = 0;   // WorldWaits::answers() then
  std::int64_t told_ns = 0;    // the name of the wait that has been reported
};

// Returns "waits for rank 1 in barrier #3 of a group of 2, rank 0 its first".
std::string describe(const WorldWaiting& waiting);
// Returns "waits for rank 3 in a recv, tag 8".
std::string describe(const WaitTarget& transfer);

// Any thread may call.
class WorldWaits {
 public:
  // All arguments must outlive it. `remote`: nullptr if there is one host.
  WorldWaits(const Hosts& hosts, LocalHost& host, RemoteRecords* remote,
             const DeadlockPolicy& policy)
      : hosts_(hosts), host_(host), remote_(remote), policy_(policy) {}

  const DeadlockPolicy& policy() const noexcept { return policy_; }
  // Returns true if a wait without progress since then is long enough to look for a deadlock.
  bool is_long(std::int64_t since_ns) const noexcept {
    return policy_.on() && flight_clock_ns() - since_ns >= policy_.after_ns() / 2;
  }

  // Counts the groups in which this rank waits: begin() before the first note(), end() at last.
  void begin() noexcept { waiting_.fetch_add(1, std::memory_order_relaxed); }
  int count() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  // Records this rank's wait; if threads wait in several groups, the latest one. since_ns 0: keeps
  // the time of a wait that is noted already.
  void note(const WorldWaiting& waiting) noexcept;
  void end(std::uint64_t group) noexcept;
  // Returns nullopt if it is not known to wait. For a rank on another host: its last report, with
  // the time of the report as since_ns.
  std::optional<WorldWaiting> of(int rank) const noexcept;

  // Returns what `peer` last answered to this rank; for a rank on this host, an empty answer.
  Answer answer_of(int peer) const noexcept;
  // Returns true if nothing is in transit between this rank and `peer`, whose wait has this name.
  // It may still have to be polled.
  bool is_quiet(int peer, std::int64_t name_ns) const noexcept;
  // Notes that this rank's wait `name_ns` must come after another one.
  void stand_behind(std::int64_t name_ns, Behind behind) noexcept;
  using Circle = std::vector<std::pair<int, WorldWaiting>>;
  // Returns the ranks that can never go on and for which `rank` waits, or among which it is; the
  // one with the lowest number first. Empty: none is proved.
  Circle deadlock(int rank) const;
  // Asks those ranks on other hosts for their waits that keep deadlock() from an answer.
  void ask_along(int rank) noexcept;
  // Reports this rank's wait, if it waits, to world ranks on other hosts.
  void tell(std::span<const int> ranks, bool ask) noexcept;
  // Reports this rank's wait to the ranks that have asked for it: with an Answer at the second call
  // during one wait. Call it once between two polls.
  void answer() noexcept;
  // Returns the number of questions answered so far.
  std::uint64_t answers() const noexcept { return answers_.load(std::memory_order_relaxed); }

  // Returns ranks that wait for each other in several groups, `rank` first; empty: there are none.
  // Reports of other hosts from before `since_ns` may be outdated and are ignored, as is a local
  // wait that has just begun.
  Circle circle(int rank, std::int64_t since_ns) const;
  // Returns the rank on another host without a report since then that the chain of waiting ranks
  // from `rank` reaches; -1: none.
  int unheard(int rank, std::int64_t since_ns) const;
  std::vector<int> all_ranks() const;

 private:
  bool holds(int rank, const WorldWaiting& waiting, std::int64_t since_ns) const noexcept;
  // Follows the chain from `rank` to where nothing is known, or back to `rank`.
  Circle walk(int rank, std::int64_t since_ns) const;

  const Hosts& hosts_;
  LocalHost& host_;
  RemoteRecords* remote_;
  const DeadlockPolicy policy_;
  std::atomic<int> waiting_ = 0;
  std::atomic<std::uint64_t> answers_ = 0;
  struct Asked {
    Question question = {};
    std::int64_t name_ns = 0;    // of this rank's wait at the first look
    std::uint64_t received = 0;  // Frames::received then
  };
  std::mutex answering_;        // guards asked_
  std::map<int, Asked> asked_;  // by rank
};

}  // namespace unisono::comm
