// Writes the text of a timeout: the rank that this one waits for, and the rank that delays all
// others.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "base/bytes_text.h"
#include "diagnose/diagnosis.h"
#include "diagnose/rank_label.h"
#include "engine/executor.h"
#include "membership/abort_word.h"
#include "membership/watch.h"

namespace unisono::comm {

namespace {

// Time for the waiting ranks on other hosts to report.
constexpr auto kReportTime = std::chrono::milliseconds(500);
constexpr int kNobody = -1;   // not waiting for any rank
constexpr int kAnybody = -2;  // waiting for a rank outside the group

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", seconds);
  return text;
}

}  // namespace

// Returns the ranks on other hosts that have not reported a wait since `since_ns`.
std::vector<int> Diagnosis::unheard(std::int64_t since_ns) const {
  std::vector<int> ranks;
  for (int peer = 0; peer < records_.size(); ++peer) {
    if (records_.here(peer) == nullptr && !wait_of(peer, since_ns)) {
      ranks.push_back(peer);
    }
  }
  return ranks;
}

// Waiting ranks report soon, so the ranks without a report are not waiting.
std::vector<int> Diagnosis::await_unheard(const Operation& operation, std::int64_t since_ns) {
  // Asks all ranks, because they may wait for each other in other groups.
  records_.tell_others(operation.sequence, true);
  waits_.tell(waits_.all_ranks(), true);
  const auto start = std::chrono::steady_clock::now();
  std::vector<int> ranks = unheard(since_ns);
  const int self = records_.world_rank(records_.rank());
  while ((!ranks.empty() || waits_.unheard(self, since_ns) >= 0) && !abort_.is_set() &&
         std::chrono::steady_clock::now() - start < kReportTime) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    watch_.look();
    hear_others(operation.sequence);
    ranks = unheard(since_ns);
  }
  return ranks;
}

// Returns a rank's wait, which may be in another group. Ignores reports of other hosts from before
// `since_ns`, which may be outdated.
std::optional<WorldWaiting> Diagnosis::wait_of(int rank, std::int64_t since_ns) const {
  const auto wait = waits_.of(records_.world_rank(rank));
  const bool holds = records_.here(rank) != nullptr || (wait && wait->waiting.since_ns >= since_ns);
  return holds ? wait : std::nullopt;
}

// Returns the rank that `rank` waits for in this group.
int Diagnosis::waits_for(int rank, std::int64_t since_ns) const {
  std::optional<WaitTarget> wait;
  if (const FlightRecorder* const theirs = records_.here(rank)) {
    wait = read_wait(*theirs);
  } else if (const auto told = wait_of(rank, since_ns); told && told->group == records_.id()) {
    wait = told->waiting;
  }
  if (!wait) {
    return kNobody;
  }
  const int found = records_.group_rank(wait->peer);
  return found < 0 ? kAnybody : found;
}

Diagnosis::Culprit Diagnosis::look_at(int rank) const {
  return {rank, watch_.stopped_process(records_.world_rank(rank))};
}

// Returns the rank that delays this one: the last rank in the chain of waiting ranks, or a stopped
// one in it. If the chain seems to be a cycle, returns any stopped rank. rank -1: none found.
Diagnosis::Culprit Diagnosis::find_culprit(int waited_for, std::int64_t since_ns) const {
  int rank = waited_for;
  for (int hops = 0; rank >= 0 && hops < records_.size(); ++hops) {
    const Culprit found = look_at(rank);
    const int next = waits_for(rank, since_ns);
    if (found.stopped != 0 || next == kNobody) {
      return found;
    }
    rank = next;
  }
  for (rank = 0; rank < records_.size(); ++rank) {
    if (const Culprit found = look_at(rank); found.stopped != 0) {
      return found;
    }
  }
  return {};
}

std::string Diagnosis::purpose(int rank) const {
  const FlightRecorder* const theirs = records_.here(rank);
  std::string label = theirs == nullptr ? std::string() : read_label(theirs->label);
  if (label.empty()) {
    label = label_of_(records_.world_rank(rank));
  }
  return label.empty() ? std::string() : ", for " + label;
}

// Describes the call of a rank that has not entered the operation. Empty if it has entered it, or
// if its call is unknown.
std::string Diagnosis::describe_late(int rank, std::uint64_t sequence,
                                     std::int64_t since_ns) const {
  const FlightRecorder* const theirs = records_.find(rank);
  const auto newest = theirs == nullptr ? OperationRecord{} : newest_record(*theirs);
  const auto wait = wait_of(rank, since_ns);
  const bool is_in_group = wait && wait->group == records_.id();
  const bool is_in_transfer = is_in_group && wait->waiting.what != WaitTarget::What::collective;
  // A rank on another host has reported its calls of the group in which it waits, if it waits at
  // all.
  const bool is_known =
      records_.here(rank) != nullptr || (is_in_group && (theirs != nullptr || is_in_transfer));
  if (!is_known || newest.sequence >= sequence) {
    return {};
  }
  std::string text = newest.sequence == 0 ? std::string("it has called no collective yet")
                                          : "its latest is #" + std::to_string(newest.sequence) +
                                                ", " + describe(newest) + purpose(rank);
  if (is_in_transfer) {
    text += ", and it " + describe(wait->waiting);
  } else if (wait && !is_in_group) {
    text += ", and it " + describe(*wait);
  }
  return text;
}

void Diagnosis::raise_timeout(const Operation& operation, double seconds) {
  const std::uint64_t sequence = operation.sequence;
  const auto mine = read_record(records_.mine(), sequence);
  const engine::Wait wait = executor_.waiting();
  std::string text = (mine.has_value() ? std::string(to_string(mine->collective)) : "operation") +
                     " #" + std::to_string(sequence) + " on " + records_.name(records_.rank()) +
                     ": no data";
  if (wait.rank >= 0) {
    text += " from " + records_.name(wait.rank);
  }
  text += " for " + seconds_text(seconds) + " at step " + std::to_string(wait.step + 1);
  if (mine.has_value()) {
    text += " (" + describe(*mine) + purpose(records_.rank()) + ")";
  }
  const std::int64_t asked_ns = flight_clock_ns();
  std::vector<int> silent;
  if (records_.has_remote()) {
    silent = await_unheard(operation, asked_ns);
  }
  std::string others;
  for (const int peer : silent) {
    others += "\n" + records_.name(peer) + ", on another host, has not reported a wait";
  }
  const WorldWaits::Circle circle = waits_.circle(records_.world_rank(records_.rank()), asked_ns);
  if (!circle.empty()) {
    raise(ErrorCode::timeout, wait.rank, text + describe_circle(circle));
    return;
  }
  int missing = kNobody;
  Culprit late;  // a stopped rank among those that have not entered it
  for (int peer = 0; peer < records_.size(); ++peer) {
    const std::string latest = describe_late(peer, sequence, asked_ns);
    const auto told = wait_of(peer, asked_ns);
    if (!latest.empty()) {
      missing = missing == kNobody ? peer : missing;
      if (late.stopped == 0) {
        late = look_at(peer);
      }
      others += "\n" + records_.name(peer) + " has not entered it: " + latest;
    } else if (records_.here(peer) == nullptr && told && told->group != records_.id()) {
      others += "\n" + records_.name(peer) + " " + describe(*told);
    }
  }
  Culprit culprit = find_culprit(wait.rank, asked_ns);
  if (culprit.stopped == 0 && late.stopped != 0) {
    culprit = late;  // the chain does not show waits in other groups
  }
  // This comes first, because the text may be cut at its end.
  if (culprit.stopped != 0) {
    text += "\n" + records_.name(culprit.rank) +
            " is stopped, by a debugger or by SIGSTOP: kill -CONT " +
            std::to_string(culprit.stopped) + " continues it";
  } else if (culprit.rank >= 0 && wait.rank >= 0 && culprit.rank != wait.rank) {
    text += "\n" + records_.name(wait.rank) + " waits too: " + records_.name(culprit.rank) +
            " delays it";
  } else if (others.empty()) {
    text +=
        "\nall ranks have entered it: look for a rank that gets no CPU time, or waits in another "
        "group";
  }
  if (culprit.rank < 0) {
    culprit.rank = missing != kNobody ? missing : wait.rank;
  }
  raise(ErrorCode::timeout, culprit.rank, text + others);
}

// A send is done when it has written all of its bytes, even if the receiver has not read them.
std::string Diagnosis::progress_of(const TransferState& transfer) const {
  if (transfer.send && transfer.done == transfer.bytes) {
    return "all bytes are sent, but " + records_.name(transfer.peer) + " has not received them";
  }
  return std::to_string(transfer.done) + " bytes done";
}

void Diagnosis::raise_transfer_timeout(const TransferState& transfer, double seconds) {
  const bool any = transfer.peer < 0;
  raise(ErrorCode::timeout, transfer.peer,
        std::string(transfer.send ? "send to " : "recv from ") +
            (any ? "any rank" : records_.name(transfer.peer)) + " on " +
            records_.name(records_.rank()) + ", tag " + std::to_string(transfer.tag) + ", " +
            format_bytes(transfer.bytes) + purpose(records_.rank()) + ": " + progress_of(transfer) +
            " after " + seconds_text(seconds) + "\nthe other side must call the matching " +
            (transfer.send ? "recv" : "send") + " with the same tag");
}

}  // namespace unisono::comm
