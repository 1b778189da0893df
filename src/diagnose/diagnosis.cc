#include "diagnose/diagnosis.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "engine/executor.h"
#include "membership/abort_word.h"
#include "membership/watch.h"

namespace unisono::comm {
namespace {

// The time that a rank with a wrong message waits for a report from the sender.
constexpr auto kTellingTime = std::chrono::milliseconds(250);
// The number of polls, a millisecond apart, before this rank reports its operation to ranks on
// other hosts.
constexpr int kLooksBeforeTelling = 20;

}  // namespace

WaitTarget Diagnosis::waiting() const {
  const engine::Wait wait = executor_.waiting();
  return {.what = WaitTarget::What::collective, .peer = wait.rank, .place = wait.step + 1};
}

bool Diagnosis::waits_only_for(int world_rank) const {
  const std::vector<engine::Wait> waits = executor_.waits();
  return world_rank >= 0 && !waits.empty() && !executor_.is_amid_message() &&
         std::all_of(waits.begin(), waits.end(), [&](const engine::Wait& wait) {
           return wait.rank >= 0 && records_.world_rank(wait.rank) == world_rank;
         });
}

void Diagnosis::hear_others(std::uint64_t sequence) noexcept {
  if (records_.hear_others()) {
    records_.tell_others(sequence, false);
  }
  waits_.answer();
}

// Waits for a rank's report. A waiting rank reports its operation; a rank that does not wait does
// not answer.
const FlightRecorder* Diagnosis::await_record(
    int rank, const Operation& operation,
    const std::function<bool(const FlightRecorder&)>& enough) {
  if (records_.here(rank) != nullptr) {
    return records_.here(rank);
  }
  records_.tell_others(operation.sequence, false);
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

// The error names the culprit as a world rank.
void Diagnosis::raise(ErrorCode code, int culprit, const std::string& text) {
  abort_.raise(code, culprit < 0 ? -1 : records_.world_rank(culprit), text);
}

// Returns the earliest call in which the two ranks are known to differ. A signature includes those
// of all earlier calls, so all calls after the first difference differ as well.
std::optional<OperationRecord> Diagnosis::first_disagreement(const FlightRecorder& theirs) const {
  std::optional<OperationRecord> first;
  const std::uint64_t newest = newest_record(theirs).sequence;
  for (std::uint64_t back = 0; back < std::min<std::uint64_t>(newest, kFlightEntries); ++back) {
    const auto their_call = read_record(theirs, newest - back);
    const auto mine = read_record(records_.mine(), newest - back);
    if (their_call && mine && their_call->signature != mine->signature) {
      first = their_call;
    }
  }
  return first;
}

void Diagnosis::raise_disagreement(int peer, const FlightRecorder& told) {
  const int rank = records_.rank();
  const auto theirs = first_disagreement(told);
  const auto mine = theirs ? read_record(records_.mine(), theirs->sequence) : std::nullopt;
  const std::string first = records_.name(rank);
  const std::string second = records_.name(peer);
  if (!mine) {  // the record has been overwritten meanwhile
    raise(ErrorCode::mismatch, peer,
          first + " and " + second + " made different calls\n" +
              std::string(to_string(Advice::same_calls)));
    return;
  }
  const std::uint64_t before = theirs->sequence - 1;
  const bool agreed_before =
      before == 0 || (read_record(told, before) && read_record(records_.mine(), before));
  const bool lower = rank < peer;
  if (!agreed_before && describe(*mine) == describe(*theirs)) {
    raise(ErrorCode::mismatch, peer,
          "operation #" + std::to_string(theirs->sequence) + ": " + (lower ? first : second) +
              " and " + (lower ? second : first) + " call " + describe(*mine) +
              ", but an earlier call of theirs differed\n" +
              std::string(to_string(Advice::same_calls)));
    return;
  }
  raise(ErrorCode::mismatch, peer,
        lower ? describe_disagreement(first, *mine, second, *theirs)
              : describe_disagreement(second, *theirs, first, *mine));
}

void Diagnosis::raise_fault(const Operation& operation) {
  const engine::Fault& fault = executor_.fault();
  // The difference is in this operation, or in an earlier one that both ranks finished without
  // noticing it.
  const FlightRecorder* const told = await_record(
      fault.from, operation,
      [&](const FlightRecorder& theirs) { return first_disagreement(theirs).has_value(); });
  if (told != nullptr && first_disagreement(*told)) {
    raise_disagreement(fault.from, *told);
    return;
  }
  const auto mine = read_record(records_.mine(), operation.sequence);
  const std::string number = "operation #" + std::to_string(operation.sequence) + ": ";
  const std::string sender = records_.name(fault.from);
  const std::string receiver = records_.name(records_.rank());
  if (mine && mine->collective != Collective::all_to_all_v) {
    raise(ErrorCode::mismatch, fault.from,
          number + sender + " sends " + receiver + " a message of another call" +
              calls(told, fault.from, operation) + "\n" +
              std::string(to_string(Advice::same_calls)));
    return;
  }
  raise(ErrorCode::mismatch, fault.from,
        number + sender + " sends " + receiver + " another number of bytes than the " +
            std::to_string(fault.expected) + " it expects" + calls(told, fault.from, operation) +
            "\nsend counts and receive counts must agree");
}

// Returns "; rank 1 calls ..., rank 0 calls ...", as far as the calls are known.
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
      raise_disagreement(peer, *told);
      return true;
    }
  }
  return false;
}

// Ends the world if a rank on another host waits in a group that this rank has left, in a call that
// differed.
bool Diagnosis::find_late_disagreement() {
  const RemoteRecords::Late late = records_.take_late_disagreement();
  if (late.rank >= 0) {
    abort_.raise(ErrorCode::mismatch, late.rank, late.text);
  }
  return late.rank >= 0;
}

void Diagnosis::look_back(const Operation& operation) {
  if (records_.has_remote()) {
    records_.hear_others();
    if (find_late_disagreement()) {
      return;
    }
  }
  if (operation.sequence != 0 && !abort_.is_set()) {
    find_disagreement(operation);
  }
}

void Diagnosis::look_around(const Operation& operation, const Standing& standing) {
  note_wait(waiting(), operation.sequence, standing);
  if (records_.has_remote()) {
    hear_others(operation.sequence);
    if (find_late_disagreement()) {
      return;
    }
  }
  looks_ = looked_in_ == operation.sequence ? looks_ + 1 : 1;
  looked_in_ = operation.sequence;
  if (looks_ == kLooksBeforeTelling) {
    records_.tell_others(operation.sequence, false);
  }
  if (find_disagreement(operation)) {
    return;
  }
  for (int peer = 0; peer < records_.size(); ++peer) {
    // A rank that has entered the operation sent all of its data before it left. has_left() comes
    // first, because the rank may enter and leave between the two checks.
    const FlightRecorder* const theirs = records_.here(peer);
    if (theirs != nullptr && watch_.has_left(records_.world_rank(peer)) &&
        newest_record(*theirs).sequence < operation.sequence) {
      raise_left(peer);
      return;
    }
  }
  // A rank on another host that has left sends nothing more. An operation may wait for it in
  // several passes.
  std::set<int> left;
  for (const engine::Wait& missing : executor_.waits()) {
    if (records_.here(missing.rank) == nullptr &&
        watch_.has_left(records_.world_rank(missing.rank))) {
      left.insert(missing.rank);
    }
  }
  for (const int rank : left) {
    if (!leavers_.insert(rank).second) {
      raise_left(rank);  // its last messages would have arrived since the last check
      return;
    }
  }
  look_for_deadlock(in_collective_, standing);
}

void Diagnosis::look_around(const TransferState& transfer, TransferWait& wait,
                            const Standing& standing) {
  note_wait({.what = transfer.send ? WaitTarget::What::send : WaitTarget::What::recv,
             .peer = transfer.peer,
             .place = transfer.tag},
            0, standing);
  look_for_leaver(transfer.peer, wait.leaver);
  const OperationRecord latest = newest_record(records_.mine());
  if (records_.has_remote()) {
    hear_others(latest.sequence);
    if (find_late_disagreement()) {
      return;
    }
    if (++wait.looks == kLooksBeforeTelling) {
      records_.tell_others(latest.sequence, false);
    }
  }
  if (latest.sequence != 0 &&
      find_disagreement({.sequence = latest.sequence, .signature = latest.signature})) {
    return;
  }
  look_for_deadlock(in_transfer_, standing);
}

void Diagnosis::look_for_leaver(int peer, int& leaver) {
  if (peer < 0 || peer == records_.rank() || !watch_.has_left(records_.world_rank(peer))) {
    return;
  }
  if (leaver != peer) {
    leaver = peer;  // its last messages may have arrived since the last check
    return;
  }
  raise_left(peer);
}

// Reports peer_lost, or a mismatch if the peer left because its calls differed; the farewell of a
// rank on another host contains them.
void Diagnosis::raise_left(int peer) {
  if (records_.has_remote()) {
    records_.hear_others();
  }
  if (const FlightRecorder* const told = records_.find(peer);
      told != nullptr && first_disagreement(*told)) {
    raise_disagreement(peer, *told);
    return;
  }
  raise(ErrorCode::peer_lost, peer,
        records_.name(peer) + " has left: it destroyed its communicator while " +
            records_.name(records_.rank()) +
            " waits for it\nan error may have ended it there: see its last output; else all ranks "
            "must make the same calls before they leave");
}

void Diagnosis::note_wait(WaitTarget waiting, std::uint64_t sequence, const Standing& standing) {
  const int peer = waiting.peer;
  if (peer >= 0) {
    waiting.peer = records_.world_rank(peer);
  }
  if (!notes_wait_.exchange(true, std::memory_order_relaxed)) {
    waits_.begin();
  }
  write_wait(records_.mine(), waiting);
  waiting.since_ns = standing.since_ns;
  if (standing.alone && waiting.what == WaitTarget::What::collective && peer >= 0) {
    waiting.peer = records_.world_rank(rank_waited_for(peer, sequence));
  }
  const bool for_one = standing.alone && (waiting.what != WaitTarget::What::collective ||
                                          waits_only_for(waiting.peer));
  const auto record = read_record(records_.mine(), sequence);
  waits_.note({.group = records_.id(),
               .group_size = records_.size(),
               .group_first = records_.members().front(),
               .sequence = sequence,
               .collective = record ? record->collective : Collective::barrier,
               .waiting = waiting,
               .alone = standing.alone,
               .for_one = for_one});
}

}  // namespace unisono::comm
