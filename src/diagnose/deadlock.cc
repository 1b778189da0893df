// Reports a deadlock (world_waits.h) while its ranks still wait: soon after they stop making
// progress, and long before the time limit.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <string>

#include "base/collectives.h"
#include "diagnose/diagnosis.h"
#include "membership/abort_word.h"

namespace unisono::comm {
namespace {

constexpr std::size_t kMostDescribed = 7;  // ranks of a cycle; an error's text is short

bool is_transfer(const WorldWaiting& waiting) {
  return waiting.waiting.what != WaitTarget::What::collective;
}

bool all_send(const WorldWaits::Circle& circle) {
  return std::all_of(circle.begin(), circle.end(), [](const auto& one) {
    return one.second.waiting.what == WaitTarget::What::send;
  });
}

}  // namespace

std::string Diagnosis::describe_circle(const WorldWaits::Circle& circle) const {
  std::set<std::uint64_t> groups;
  for (const auto& [rank, waiting] : circle) {
    groups.insert(waiting.group);
  }
  std::string text = groups.size() > 1   ? "\nranks wait for each other in different groups:"
                     : circle.size() > 1 ? "\nranks wait for each other:"
                                         : "\na rank waits for itself:";
  const std::size_t shown = circle.size() > kMostDescribed + 1 ? kMostDescribed : circle.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [rank, waiting] = circle[i];
    const std::string label = label_of_(rank);
    text += "\nrank " + std::to_string(rank) + " " + describe(waiting) +
            (label.empty() ? "" : ", for " + label);
  }
  if (shown < circle.size()) {
    text += "\nand " + std::to_string(circle.size() - shown) + " more ranks, up to rank " +
            std::to_string(circle.back().first);
  }
  if (groups.size() > 1) {
    return text + "\nmake the calls of all groups in one order on all ranks";
  }
  return text +
         (all_send(circle)
              ? "\na send waits until its receiver calls recv: let some ranks receive first, "
                "or use send_recv()"
              : "\nall ranks must make the same calls in the same order, and each recv needs "
                "a send with its tag");
}

// Returns the rank that a collective waits for, if it needs data of `missing` next. Prefers a rank
// that has not entered the collective to one that waits for such a rank. Applies only to
// collectives in which each rank needs data of every other rank.
int Diagnosis::rank_waited_for(int missing, std::uint64_t sequence) const {
  const auto mine = read_record(records_.mine(), sequence);
  if (!mine || is_rooted(mine->collective) || is_v_form(mine->collective)) {
    return missing;
  }
  const auto has_entered = [&](int rank) {
    const FlightRecorder* const theirs = records_.find(rank);
    return theirs != nullptr && newest_sequence(*theirs) >= sequence;
  };
  if (!has_entered(missing)) {
    return missing;
  }
  int found = missing;
  for (int rank = 0; rank < records_.size(); ++rank) {
    if (has_entered(rank)) {
      continue;
    }
    if (waits_.of(records_.world_rank(rank))) {
      return rank;
    }
    found = found == missing ? rank : found;
  }
  return found;
}

// Returns true if `theirs`, a rank that waits alone, is in another call than `mine`; false if both
// are in one call; nullopt if that rank may send something before it advances.
std::optional<bool> Diagnosis::is_in_another_call(const WorldWaiting& mine,
                                                  const WorldWaiting& theirs) const {
  const int self = records_.world_rank(records_.rank());
  if (is_transfer(mine)) {
    const bool is_partner = is_transfer(theirs) && theirs.group == mine.group &&
                            theirs.waiting.what != mine.waiting.what &&
                            (theirs.waiting.peer == self || theirs.waiting.peer < 0);
    return is_partner ? std::nullopt : std::optional(true);
  }
  if (!is_transfer(theirs) && theirs.group == mine.group && theirs.sequence == mine.sequence) {
    return theirs.for_one ? std::optional(false) : std::nullopt;
  }
  // A rank that has entered the collective may have sent data that others still need.
  return has_entered(mine) ? std::nullopt : std::optional(true);
}

bool Diagnosis::has_entered(const WorldWaiting& mine) const {
  const int peer = records_.group_rank(mine.waiting.peer);
  if (peer < 0) {
    return true;
  }
  if (const FlightRecorder* const recorder = records_.here(peer)) {
    return newest_sequence(*recorder) >= mine.sequence;
  }
  const Answer answer = waits_.answer_of(mine.waiting.peer);
  return answer.has_entered ||
         answer.question != Question{.group = mine.group, .sequence = mine.sequence};
}

void Diagnosis::look_for_deadlock(Standstill& standstill, const Standing& standing) {
  const int self = records_.world_rank(records_.rank());
  const auto mine = standing.alone ? waits_.of(self) : std::nullopt;
  if (!mine || mine->name_ns != standing.since_ns || mine->waiting.peer < 0) {
    standstill.seen_ns = 0;
    return;
  }
  const auto theirs = waits_.of(mine->waiting.peer);
  const bool is_quiet = theirs && waits_.is_quiet(mine->waiting.peer, theirs->name_ns);
  const std::int64_t name = is_quiet && theirs->alone ? theirs->name_ns : 0;
  // If its wait was already known at the last poll, everything that the other rank sent before the
  // wait had arrived by then.
  if (name != 0 && name == standstill.seen_ns) {
    if (const auto differs = is_in_another_call(*mine, *theirs)) {
      waits_.stand_behind(mine->name_ns, {.name_ns = name, .in_another_call = *differs});
    }
  }
  standstill.seen_ns = name;
  const std::int64_t now = flight_clock_ns();
  const std::int64_t after = waits_.policy().after_ns();
  const std::int64_t pause = after / 8;
  const std::int64_t waited = now - standing.since_ns;
  if (now - standstill.looked_ns < pause || standstill.told_ns == mine->name_ns) {
    return;
  }
  standstill.looked_ns = now;
  // A rank that computes for long does not read the questions, so this rank asks less and less
  // often. A rank that others ask may have to ask again.
  const bool is_asked = waits_.answers() != standstill.answers;
  if (now - standstill.asked_ns >= (is_asked ? pause : std::max(pause, waited / 4))) {
    standstill.asked_ns = now;
    standstill.answers = waits_.answers();
    waits_.ask_along(self);
  }
  if (waited < after) {
    return;
  }
  const WorldWaits::Circle circle = waits_.deadlock(self);
  if (circle.empty()) {
    return;
  }
  standstill.told_ns = mine->name_ns;
  if (waits_.policy().action == DeadlockPolicy::Action::abort) {
    raise(
        ErrorCode::mismatch, records_.group_rank(mine->waiting.peer),
        "deadlock: rank " + std::to_string(self) + " can never continue" + describe_circle(circle));
    return;
  }
  std::fprintf(
      stderr,
      "unisono: rank %d: deadlock: it can never continue%s\nit waits until its time limit; "
      "UNISONO_DEADLOCK=abort ends the world at once\n",
      self, describe_circle(circle).c_str());
}

}  // namespace unisono::comm
