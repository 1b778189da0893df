// Tracks the wait of each rank, in any group, to find ranks that wait for each other in different
// calls, which no single group shows. All ranks here are world ranks.
//
// A cycle of waits proves a deadlock. Rank r waits for a message, or for free space, from rank p,
// and p waits alone: its caller waits in one call, and nothing else of p is pending. Let F(r, p)
// mean: r receives what it waits for only after p has received what p waits for. r notes F(r, p),
// with the names of the two waits (Behind), once it is certain of two facts:
//   - p sends nothing more to r before p advances. If p is in another call: p makes no call
//     before that call ends, and has not entered r's collective. If p is in r's collective: p
//     waits for one rank only (for_one), and only data from that rank lets p advance.
//   - r has seen all data that p has sent. Within a host, r polls after it has seen p's wait,
//     and a rank publishes its wait after its data. Between hosts a report may overtake data,
//     so r asks p, and compares the frames of both directions (transport::Frames). p counts its
//     frames twice and polls in between, and it answers only if it makes no progress. p reports
//     the number of frames that it had received at the first count, and the number that it had
//     sent at the second count. r compares the numbers with its own. If r has received all
//     frames that p has sent, r polls once more, and must not receive what it waits for. r must
//     also have sent no more frames than p has received. So p has seen all of r's frames, and
//     no longer reacts to any of them.
// F(r, p) is about the order of two events, so a note stays true. If notes lead from a wait back to
// itself, each rank of this cycle could receive its data only after it has received its data. So no
// rank of the cycle ever receives its data, no matter when each note was made. A rank that
// computes, that has something else pending or that makes progress has no such wait.
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

// A caller's wait, as reported by its Waiter.
struct Standing {
  std::int64_t since_ns = 0;  // time of the last progress; 0: no caller waits
  bool alone = false;         // the wait is long, and nothing else of this rank is pending
};

// The state of the search for a deadlock during one wait.
struct Standstill {
  std::int64_t seen_ns = 0;    // name of the peer's wait, if nothing was in transit then; else 0
  std::int64_t looked_ns = 0;  // time of the last search for a cycle
  std::int64_t asked_ns = 0;   // time of the last questions to other hosts
  std::uint64_t answers = 0;   // WorldWaits::answers() at that time
  std::int64_t told_ns = 0;    // name of the wait that was reported
};

// Returns "waits for rank 1 in barrier #3 of a group of 2, rank 0 its first".
std::string describe(const WorldWaiting& waiting);
// Returns "waits for rank 3 in a recv, tag 8".
std::string describe(const WaitTarget& transfer);

// Threads: any.
class WorldWaits {
 public:
  // All arguments must outlive this object. `remote`: nullptr if there is only one host.
  WorldWaits(const Hosts& hosts, LocalHost& host, RemoteRecords* remote,
             const DeadlockPolicy& policy)
      : hosts_(hosts), host_(host), remote_(remote), policy_(policy) {}

  const DeadlockPolicy& policy() const noexcept { return policy_; }
  // Returns true if a wait without progress since `since_ns` is long enough to look for a deadlock.
  bool is_long(std::int64_t since_ns) const noexcept {
    return policy_.on() && flight_clock_ns() - since_ns >= policy_.after_ns() / 2;
  }

  // Counts the groups in which this rank waits: call begin() before the first note(), and end() at
  // the end.
  void begin() noexcept { waiting_.fetch_add(1, std::memory_order_relaxed); }
  int count() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  // Records this rank's wait; if threads wait in several groups, only the latest wait. since_ns 0:
  // keeps the time of a wait that is already recorded.
  void note(const WorldWaiting& waiting) noexcept;
  void end(std::uint64_t group) noexcept;
  // Returns nullopt if the rank is not known to wait. For a rank on another host, returns its
  // latest report, with the time of the report as since_ns.
  std::optional<WorldWaiting> of(int rank) const noexcept;

  // Returns the latest answer of `peer` to this rank; for a rank on this host, an empty answer.
  Answer answer_of(int peer) const noexcept;
  // Returns true if nothing is in transit between this rank and `peer`, whose wait has this name.
  // Received data may still have to be polled.
  bool is_quiet(int peer, std::int64_t name_ns) const noexcept;
  // Notes that this rank's wait `name_ns` can end only after another wait.
  void stand_behind(std::int64_t name_ns, Behind behind) noexcept;
  using Circle = std::vector<std::pair<int, WorldWaiting>>;
  // Returns the ranks that can never continue and that `rank` waits for, or belongs to, starting
  // with the lowest rank. Empty if no deadlock is proved.
  Circle deadlock(int rank) const;
  // Asks the ranks on other hosts whose waits deadlock() lacks.
  void ask_along(int rank) noexcept;
  // Reports this rank's wait, if it waits, to world ranks on other hosts.
  void tell(std::span<const int> ranks, bool ask) noexcept;
  // Reports this rank's wait to the ranks that have asked for it; at the second call during one
  // wait, with an Answer. Call it once between two polls.
  void answer() noexcept;
  // Returns the number of questions answered so far.
  std::uint64_t answers() const noexcept { return answers_.load(std::memory_order_relaxed); }

  // Returns ranks that wait for each other in several groups, starting with `rank`; empty if there
  // are none. Ignores reports of other hosts from before `since_ns`, which may be outdated, and
  // local waits that have just begun.
  Circle circle(int rank, std::int64_t since_ns) const;
  // Returns the rank on another host at which the chain of waiting ranks from `rank` ends for lack
  // of a report since `since_ns`; -1 if there is none.
  int unheard(int rank, std::int64_t since_ns) const;
  std::vector<int> all_ranks() const;

 private:
  bool holds(int rank, const WorldWaiting& waiting, std::int64_t since_ns) const noexcept;
  // Follows the chain of waits from `rank` until a wait is unknown, or back to `rank`.
  Circle walk(int rank, std::int64_t since_ns) const;

  const Hosts& hosts_;
  LocalHost& host_;
  RemoteRecords* remote_;
  const DeadlockPolicy policy_;
  std::atomic<int> waiting_ = 0;
  std::atomic<std::uint64_t> answers_ = 0;
  struct Asked {
    Question question = {};
    std::int64_t name_ns = 0;    // name of this rank's wait at the first check
    std::uint64_t received = 0;  // Frames::received at that time
  };
  std::mutex answering_;        // guards asked_
  std::map<int, Asked> asked_;  // by rank
};

}  // namespace unisono::comm
