// The words of a timeout: who is waited for, and who holds up everybody.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "base/bytes_text.h"
#include "comm/core.h"

namespace unisono::detail {

namespace {

// How long ranks of other hosts that wait as well have to say so.
constexpr auto kTellingTime = std::chrono::milliseconds(500);
constexpr int kNobody = -1;   // for whom a rank waits
constexpr int kAnybody = -2;  // or somebody of another group

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f s", seconds);
  return text;
}

}  // namespace

// Ranks of other hosts that have not said since then that they wait.
std::vector<int> Core::unheard(std::int64_t since_ns) const {
  std::vector<int> ranks;
  for (int peer = 0; peer < size(); ++peer) {
    if (flight_recorders_[static_cast<std::size_t>(peer)] == nullptr &&
        waits_for(peer, since_ns) == kNobody) {
      ranks.push_back(peer);
    }
  }
  return ranks;
}

// Who waits as well says so soon; so that only those are left who do not.
std::vector<int> Core::await_unheard(std::int64_t since_ns) {
  tell_others(true);
  const auto start = std::chrono::steady_clock::now();
  std::vector<int> ranks = unheard(since_ns);
  while (!ranks.empty() && !world_->aborted() &&
         std::chrono::steady_clock::now() - start < kTellingTime) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    world_->look_for_deaths();
    hear_others();
    ranks = unheard(since_ns);
  }
  return ranks;
}

// For whom a rank waits in this group. `since_ns`: what one of another host told before may be true
// no more.
int Core::waits_for(int rank, std::int64_t since_ns) const {
  const comm::FlightRecorder* const theirs = flight_recorder(rank);
  const bool is_here = flight_recorders_[static_cast<std::size_t>(rank)] != nullptr;
  const auto wait = theirs == nullptr ? std::nullopt : comm::read_wait(*theirs);
  if (!wait || (!is_here && wait->since_ns < since_ns)) {
    return kNobody;
  }
  const auto found = std::find(members_.begin(), members_.end(), wait->peer);
  return found == members_.end() ? kAnybody : static_cast<int>(found - members_.begin());
}

// Who holds up this rank: the last of those that wait for one another, or who is stopped among
// them. Where they wait in a circle, as far as is seen, it is any that is stopped. rank -1: nobody
// is found.
Core::Culprit Core::find_culprit(int waited_for, std::int64_t since_ns) const {
  const auto look_at = [this](int rank) {
    return Culprit{rank, world_->stopped_process(members_[static_cast<std::size_t>(rank)])};
  };
  int rank = waited_for;
  for (int hops = 0; rank >= 0 && hops < size(); ++hops) {
    const Culprit found = look_at(rank);
    const int next = waits_for(rank, since_ns);
    if (found.stopped != 0 || next == kNobody) {
      return found;
    }
    rank = next;
  }
  for (rank = 0; rank < size(); ++rank) {
    if (const Culprit found = look_at(rank); found.stopped != 0) {
      return found;
    }
  }
  return {};
}

void Core::raise_timeout(double seconds) {
  const auto mine = comm::read_record(my_flight_recorder(), sequence_);
  const engine::Executor::Wait wait = executor_.waiting();
  std::string text = (mine.has_value() ? std::string(to_string(mine->collective)) : "operation") +
                     " #" + std::to_string(sequence_) + " on " + name(rank_) + ": no data";
  if (wait.rank >= 0) {
    text += " from " + name(wait.rank);
  }
  text += " for " + seconds_text(seconds) + " at step " + std::to_string(wait.step + 1);
  if (mine.has_value()) {
    text += " (" + comm::describe(*mine) + ")";
  }
  const std::int64_t asked_ns = comm::flight_clock_ns();
  std::vector<int> silent;
  if (world_->remote_records() != nullptr) {
    silent = await_unheard(asked_ns);
  }
  std::string others;
  for (const int peer : silent) {
    others += "\n" + name(peer) + ", of another host, has not said that it waits";
  }
  int missing = kNobody;
  Culprit late;  // one that is stopped, of those that have not entered it
  for (int peer = 0; peer < size(); ++peer) {
    const comm::FlightRecorder* const theirs = flight_recorder(peer);
    const bool told = theirs != nullptr && !std::count(silent.begin(), silent.end(), peer);
    const auto newest = told ? comm::newest_record(*theirs) : comm::OperationRecord{};
    if (told && newest.sequence < sequence_) {
      missing = missing == kNobody ? peer : missing;
      if (late.stopped == 0) {
        late = {peer, world_->stopped_process(members_[static_cast<std::size_t>(peer)])};
      }
      others += "\n" + name(peer) + " has not entered it: ";
      others += newest.sequence == 0 ? std::string("it has called nothing yet")
                                     : "its latest is #" + std::to_string(newest.sequence) + ", " +
                                           comm::describe(newest);
    }
  }
  Culprit culprit = find_culprit(wait.rank, asked_ns);
  if (culprit.stopped == 0 && late.stopped != 0) {
    culprit = late;  // whoever waits for it in another group is not seen to wait
  }
  // First, because the text may be cut at its end.
  if (culprit.stopped != 0) {
    text += "\n" + name(culprit.rank) +
            " is stopped, by a debugger or by SIGSTOP: then kill -CONT " +
            std::to_string(culprit.stopped) + " lets it go on";
  } else if (culprit.rank >= 0 && wait.rank >= 0 && culprit.rank != wait.rank) {
    text += "\n" + name(wait.rank) + " waits too: " + name(culprit.rank) + " holds it up";
  } else if (missing == kNobody && silent.empty()) {
    text +=
        "\nall ranks have entered it: look for one that gets no processor, or is in another group";
  }
  if (culprit.rank < 0) {
    culprit.rank = missing != kNobody ? missing : wait.rank;
  }
  world_->raise(ErrorCode::timeout,
                culprit.rank < 0 ? -1 : members_[static_cast<std::size_t>(culprit.rank)],
                text + others);
}

void Core::raise_transfer_timeout(const comm::Transfer& transfer, double seconds) {
  const bool any = transfer.peer == kAnySource;
  world_->raise(ErrorCode::timeout, any ? -1 : members_[static_cast<std::size_t>(transfer.peer)],
                std::string(transfer.send ? "send to " : "recv from ") +
                    (any ? "any rank" : name(transfer.peer)) + " on " + name(rank_) + ", tag " +
                    std::to_string(transfer.tag) + ", " + format_bytes(transfer.bytes) + ": " +
                    std::to_string(transfer.done) + " bytes done after " + seconds_text(seconds) +
                    "\nthe other side must call the matching " + (transfer.send ? "recv" : "send") +
                    " with the same tag");
}

}  // namespace unisono::detail
