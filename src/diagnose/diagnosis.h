// Finds errors while an operation of a group waits. Each error ends the world, which ends all waits
// of all ranks; the text of the error is the reason that they report. Ranks are group ranks.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/group_records.h"
#include "diagnose/world_waits.h"
#include "unisono/error.hpp"

namespace unisono::engine {

class Executor;

}  // namespace unisono::engine

namespace unisono::comm {

class AbortWord;
class Watch;

// A send or receive, for error texts.
struct TransferState {
  bool send = false;
  int peer = 0;  // -1: any
  int tag = 0;
  std::size_t bytes = 0;
  std::size_t done = 0;
};

class Diagnosis {
 public:
  // Returns a world rank's label (Communicator::label); empty if it has none or is remote.
  using LabelOf = std::function<std::string(int world_rank)>;
  // All arguments must outlive it. `executor` runs the group's collectives.
  Diagnosis(GroupRecords& records, const engine::Executor& executor, Watch& watch, AbortWord& abort,
            WorldWaits& waits, LabelOf label_of)
      : records_(records),
        executor_(executor),
        watch_(watch),
        abort_(abort),
        waits_(waits),
        label_of_(std::move(label_of)) {}

  // The number and the signature of the latest collective.
  struct Operation {
    std::uint64_t sequence = 0;
    std::uint64_t signature = 0;
  };
  // Compares the latest collective with those of the other ranks, as far as they are known without
  // waiting. Call it if this rank makes no further call.
  void look_back(const Operation& operation);
  // Call it occasionally while the operation waits. Ranks that wait for each other in different
  // operations would wait forever, so it compares their operations, and looks for ranks that left
  // and for deadlocks.
  void look_around(const Operation& operation, const Standing& standing = {});
  // Like the above, for a send or receive: the peer may wait in a collective that this rank will
  // never enter. Another thread may run a collective at the same time.
  struct TransferWait {
    int leaver = -1;  // the peer that this wait has seen leave; -1: none
    int looks = 0;
  };
  void look_around(const TransferState& transfer, TransferWait& wait, const Standing& standing);
  // Reports a message that does not belong to this operation, and the call of the peer that sent
  // it.
  void raise_fault(const Operation& operation);
  // Reports the rank that this one waits for, and the rank that delays all others.
  void raise_timeout(const Operation& operation, double seconds);
  void raise_transfer_fault(int peer, const std::string& fault);
  void raise_transfer_timeout(const TransferState& transfer, double seconds);

  // Ends the published wait, which observers outside of the process see. Costs nothing if none was
  // published.
  void end_wait() noexcept {
    if (notes_wait_.load(std::memory_order_relaxed) &&
        notes_wait_.exchange(false, std::memory_order_relaxed)) {
      comm::end_wait(records_.mine());
      waits_.end(records_.id());
    }
  }

 private:
  struct Culprit {
    int rank = -1;
    pid_t stopped = 0;  // the rank's process, if stopped
  };
  WaitTarget waiting() const;
  bool waits_only_for(int world_rank) const;
  int rank_waited_for(int missing, std::uint64_t sequence) const;
  void note_wait(WaitTarget waiting, std::uint64_t sequence, const Standing& standing);
  void look_for_leaver(int peer, int& leaver);
  void look_for_deadlock(Standstill& standstill, const Standing& standing);
  std::optional<bool> is_in_another_call(const WorldWaiting& mine,
                                         const WorldWaiting& theirs) const;
  bool has_entered(const WorldWaiting& mine) const;
  const FlightRecorder* await_record(int rank, const Operation& operation,
                                     const std::function<bool(const FlightRecorder&)>& enough);
  void hear_others(std::uint64_t sequence) noexcept;
  bool find_late_disagreement();
  std::vector<int> unheard(std::int64_t since_ns) const;
  std::vector<int> await_unheard(const Operation& operation, std::int64_t since_ns);
  std::optional<WorldWaiting> wait_of(int rank, std::int64_t since_ns) const;
  int waits_for(int rank, std::int64_t since_ns) const;
  Culprit look_at(int rank) const;
  std::string describe_circle(const WorldWaits::Circle& circle) const;
  std::string calls(const FlightRecorder* told, int peer, const Operation& operation) const;
  Culprit find_culprit(int waited_for, std::int64_t since_ns) const;
  bool find_disagreement(const Operation& operation);
  std::optional<OperationRecord> first_disagreement(const FlightRecorder& theirs) const;
  void raise_disagreement(int peer, const FlightRecorder& told);
  std::string describe_late(int rank, std::uint64_t sequence, std::int64_t since_ns) const;
  std::string progress_of(const TransferState& transfer) const;
  std::string purpose(int rank) const;  // such as ", for layer 3 attention"
  void raise_left(int peer);
  void raise(ErrorCode code, int culprit, const std::string& text);

  GroupRecords& records_;
  const engine::Executor& executor_;
  Watch& watch_;
  AbortWord& abort_;
  WorldWaits& waits_;
  const LabelOf label_of_;
  std::atomic<bool> notes_wait_ = false;  // atomic, because a transfer and a collective may run in
                                          // two threads
  Standstill in_collective_;
  Standstill in_transfer_;
  std::set<int> leavers_;  // ranks on other hosts that this rank waited for and that had left
  int looks_ = 0;          // number of checks in the operation `looked_in_`
  std::uint64_t looked_in_ = 0;
};

}  // namespace unisono::comm
