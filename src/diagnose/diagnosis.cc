#include "diagnose/diagnosis.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "engine/executor.h"
#include "membership/abort_word.h"
#include "membership/watch.h"

namespace unisono::comm {
namespace {

// How long a rank that got a wrong message waits for word of its sender.
constexpr auto kTellingTime = std::chrono::milliseconds(250);
// Looks, a millisecond apart, before the ranks of other hosts are told what this one is in.
constexpr int kLooksBeforeTelling = 20;

}  // namespace

WaitTarget Diagnosis::waiting() const {
  const engine::Wait wait = executor_.waiting();
  return {.what = WaitTarget::What::collective, .peer = wait.rank, .place = wait.step + 1};
}

void Diagnosis::hear_others(const Operation& operation) noexcept {
  if (records_.hear_others()) {
    records_.tell_others(operation.sequence, waiting(), false);
  }
  try {
    if (const std::vector<int> askers = records_.take_askers(); !askers.empty()) {
      records_.tell(askers, operation.sequence, waiting(), false);
    }
  } catch (const std::bad_alloc&) {
    return;  // what it would have told is missing in a message, no more
  }
}

// A rank that waits tells what it is in; one that does not, is asked in vain.
const FlightRecorder* Diagnosis::await_record(
    int rank, const Operation& operation,
    const std::function<bool(const FlightRecorder&)>& enough) {
  if (records_.here(rank) != nullptr) {
    return records_.here(rank);
  }
  records_.tell_others(operation.sequence, waiting(), false);
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    records_.hear_others();
    const FlightRecorder* const found = records_.find(rank);
    if ((found != nullptr && enough(*found)) || abort_.is_set() ||
        std::chrono::steady_clock::now() - start > kTellingTime) {
      return found;
    }
    watch_.look();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The culprit is told as a rank of the world.
void Diagnosis::raise(ErrorCode code, int culprit, const std::string& text) {
  abort_.raise(code, culprit < 0 ? -1 : records_.world_rank(culprit), text);
}

// About the operation with the number of `theirs`.
void Diagnosis::raise_disagreement(int peer, const OperationRecord& theirs) {
  const int rank = records_.rank();
  const auto mine = read_record(records_.mine(), theirs.sequence);
  std::string a =
      records_.name(rank) + " calls " + (mine.has_value() ? describe(*mine) : "another operation");
  std::string b = records_.name(peer) + " calls " + describe(theirs);
  if (peer < rank) {
    std::swap(a, b);
  }
  std::vector<OperationRecord> calls{theirs};
  if (mine.has_value()) {
    calls.push_back(*mine);
  }
  raise(ErrorCode::mismatch, peer,
        "operation #" + std::to_string(theirs.sequence) + ": " + a + "; " + b + "\n" +
            std::string(to_string(advice_on(calls))));
}

void Diagnosis::raise_fault(const Operation& operation) {
  const engine::Fault& fault = executor_.fault();
  const auto disagreeing = [&](const FlightRecorder& theirs) -> std::optional<OperationRecord> {
    const auto same = read_record(theirs, operation.sequence);
    if (same.has_value() && same->signature != operation.signature) {
      return same;
    }
    // Left over from an operation that this rank took for another one, and finished.
    const auto earlier = find_record(theirs, fault.signature);
    return earlier.has_value() && earlier->sequence != operation.sequence ? earlier : std::nullopt;
  };
  const FlightRecorder* const told =
      await_record(fault.from, operation,
                   [&](const FlightRecorder& theirs) { return disagreeing(theirs).has_value(); });
  if (told != nullptr) {
    if (const auto theirs = disagreeing(*told)) {
      raise_disagreement(fault.from, *theirs);
      return;
    }
  }
  const auto mine = read_record(records_.mine(), operation.sequence);
  const bool counts_of_each =
      !mine || is_v_form(mine->collective) || mine->collective == Collective::all_to_all;
  raise(ErrorCode::mismatch, fault.from,
        "operation #" + std::to_string(operation.sequence) + ": " + records_.name(fault.from) +
            " sends " + records_.name(records_.rank()) + " another number of bytes than the " +
            std::to_string(fault.expected) + " it expects" + calls(told, fault.from, operation) +
            (counts_of_each ? "\nsend counts and receive counts must agree"
                            : "\nall ranks must pass the same count and data type"));
}

// "; rank 1 calls ..., rank 0 calls ...", as far as is known.
std::string Diagnosis::calls(const FlightRecorder* told, int peer,
                             const Operation& operation) const {
  std::string text;
  const auto mine = read_record(records_.mine(), operation.sequence);
  const auto theirs = told == nullptr ? std::nullopt : read_record(*told, operation.sequence);
  if (mine && theirs && describe(*mine) == describe(*theirs)) {
    return "; both call " + describe(*mine);
  }
  if (mine) {
    text += "; " + records_.name(records_.rank()) + " calls " + describe(*mine);
  }
  if (theirs) {
    return text + ", " + records_.name(peer) + " calls " + describe(*theirs);
  }
  if (told != nullptr && newest_record(*told).sequence != 0) {
    const OperationRecord latest = newest_record(*told);
    text += ", the latest of " + records_.name(peer) + " is #" + std::to_string(latest.sequence) +
            ", " + describe(latest);
  }
  return text;
}

void Diagnosis::raise_transfer_fault(int peer, const std::string& fault) {
  raise(ErrorCode::mismatch, peer, fault);
}

bool Diagnosis::find_disagreement(const Operation& operation) {
  for (int peer = 0; peer < records_.size(); ++peer) {
    const FlightRecorder* const told = records_.find(peer);
    const auto theirs = told == nullptr ? std::nullopt : read_record(*told, operation.sequence);
    if (theirs.has_value() && theirs->signature != operation.signature) {
      raise_disagreement(peer, *theirs);
      return true;
    }
  }
  return false;
}

void Diagnosis::look_around(const Operation& operation) {
  note_wait(waiting(), operation.sequence);
  if (records_.has_remote()) {
    hear_others(operation);
  }
  looks_ = looked_in_ == operation.sequence ? looks_ + 1 : 1;
  looked_in_ = operation.sequence;
  if (looks_ == kLooksBeforeTelling) {
    records_.tell_others(operation.sequence, waiting(), false);
  }
  if (find_disagreement(operation)) {
    return;
  }
  for (int peer = 0; peer < records_.size(); ++peer) {
    // A rank that has entered the operation has sent all that it owed before it left. Asked in this
    // order: it may do both between the two questions.
    const FlightRecorder* const theirs = records_.here(peer);
    if (theirs != nullptr && watch_.has_left(records_.world_rank(peer)) &&
        newest_record(*theirs).sequence < operation.sequence) {
      raise_left(peer);
      return;
    }
  }
  // One of another host that has left and is still waited for sends nothing more. An operation may
  // wait for it in several passes.
  std::set<int> left;
  for (const engine::Wait& missing : executor_.waits()) {
    if (records_.here(missing.rank) == nullptr &&
        watch_.has_left(records_.world_rank(missing.rank))) {
      left.insert(missing.rank);
    }
  }
  for (const int rank : left) {
    if (!leavers_.insert(rank).second) {
      raise_left(rank);  // its last messages would have come since the last look
      return;
    }
  }
}

void Diagnosis::look_for_leaver(int peer, int& leaver) {
  if (peer < 0 || peer == records_.rank() || !watch_.has_left(records_.world_rank(peer))) {
    return;
  }
  if (leaver != peer) {
    leaver = peer;  // its last messages may have come since the last look
    return;
  }
  raise_left(peer);
}

void Diagnosis::raise_left(int peer) {
  raise(ErrorCode::peer_lost, peer,
        records_.name(peer) + " has left: it destroyed its communicator while " +
            records_.name(records_.rank()) +
            " waits for it\nan error may have ended it there: see its last output; else all ranks "
            "must make the same calls before they leave");
}

void Diagnosis::note_wait(WaitTarget waiting, std::uint64_t sequence) noexcept {
  if (waiting.peer >= 0) {
    waiting.peer = records_.world_rank(waiting.peer);
  }
  notes_wait_.store(true, std::memory_order_relaxed);
  write_wait(records_.mine(), waiting);
  const auto record = read_record(records_.mine(), sequence);
  waits_.note({.group = records_.id(),
               .group_size = records_.size(),
               .group_first = records_.members().front(),
               .sequence = sequence,
               .collective = record ? record->collective : Collective::barrier,
               .waiting = waiting});
}

void Diagnosis::note_wait(const TransferState& transfer) noexcept {
  note_wait(WaitTarget{.what = transfer.send ? WaitTarget::What::send : WaitTarget::What::recv,
                       .peer = transfer.peer,
                       .place = transfer.tag});
}

}  // namespace unisono::comm
