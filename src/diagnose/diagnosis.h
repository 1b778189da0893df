// Finds errors while an operation of a group waits. Each finding ends the world with its reason in
// words, which ends every wait of every rank. Ranks are group ranks.
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

// A send or receive, for messages.
struct TransferState {
  bool send = false;
  int peer = 0;  // -1: any
  int tag = 0;
  std::size_t bytes = 0;
  std::size_t done = 0;
};

class Diagnosis {
 public:
  // Returns the label of a world rank (Communicator::label); empty: it has none, or is on another
  // host.
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

  // The latest collective: its number and its signature.
  struct Operation {
    std::uint64_t sequence = 0;
    std::uint64_t signature = 0;
  };
  // Compares the latest collective with those of the other ranks, as far as they are known without
  // waiting. For a rank that makes no further call.
  void look_back(const Operation& operation);
  // Call it occasionally while the operation waits. Ranks that wait for each other in different
  // operations would wait for ever, so it compares their operations, and looks for ranks that left.
  void look_around(const Operation& operation);
  // Reports a message that does not belong to this operation, with the call of the peer that sent
  // it.
  void raise_fault(const Operation& operation);
  // Reports the rank that is waited for, and the rank that delays all others.
  void raise_timeout(const Operation& operation, double seconds);
  void raise_transfer_fault(int peer, const std::string& fault);
  void raise_transfer_timeout(const TransferState& transfer, double seconds);
  // As look_around(), for a send or receive. `leaver`: the peer that has left, as far as this wait
  // has seen; -1 at first.
  void look_for_leaver(int peer, int& leaver);

  // Publish the current wait for observers outside of the process. end_wait() costs nothing if
  // nothing was published. `sequence`: of a collective.
  void note_wait(WaitTarget waiting, std::uint64_t sequence = 0) noexcept;
  void note_wait(const TransferState& transfer) noexcept;
  void end_wait() noexcept {
    if (notes_wait_.load(std::memory_order_relaxed)) {
      notes_wait_.store(false, std::memory_order_relaxed);
      comm::end_wait(records_.mine());
      waits_.end(records_.id());
    }
  }

 private:
  struct Culprit {
    int rank = -1;
    pid_t stopped = 0;  // its process, if it is stopped
  };
  WaitTarget waiting() const;
  const FlightRecorder* await_record(int rank, const Operation& operation,
                                     const std::function<bool(const FlightRecorder&)>& enough);
  void hear_others(const Operation& operation) noexcept;
  std::vector<int> unheard(std::int64_t since_ns) const;
  std::vector<int> await_unheard(const Operation& operation, std::int64_t since_ns);
  int waits_for(int rank, std::int64_t since_ns) const;
  Culprit look_at(int rank) const;
  std::string describe_circle(const WorldWaits::Circle& circle) const;
  std::string calls(const FlightRecorder* told, int peer, const Operation& operation) const;
  Culprit find_culprit(int waited_for, std::int64_t since_ns) const;
  bool find_disagreement(const Operation& operation);
  std::optional<OperationRecord> first_disagreement(const FlightRecorder& theirs) const;
  void raise_disagreement(int peer, const FlightRecorder& told);
  std::string progress_of(const TransferState& transfer) const;
  std::string purpose(int rank) const;  // ", for layer 3 attention"
  void raise_left(int peer);
  void raise(ErrorCode code, int culprit, const std::string& text);

  GroupRecords& records_;
  const engine::Executor& executor_;
  Watch& watch_;
  AbortWord& abort_;
  WorldWaits& waits_;
  const LabelOf label_of_;
  std::atomic<bool> notes_wait_ = false;  // transfers and a collective may be in two threads
  std::set<int> leavers_;  // ranks on other hosts that had left when they were waited for
  int looks_ = 0;          // in the operation `looked_in_`
  std::uint64_t looked_in_ = 0;
};

}  // namespace unisono::comm
