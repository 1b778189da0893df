// What goes wrong while an operation waits, in words: each tells the world, which ends every wait
// on every rank.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "comm/core.h"

namespace unisono::detail {

using comm::OperationRecord;

namespace {

// How long a rank that got a wrong message waits for word of its sender.
constexpr auto kTellingTime = std::chrono::milliseconds(250);

// Looks, a millisecond apart, before the ranks of other hosts are told what this one is in.
constexpr int kLooksBeforeTelling = 20;
// Of so many operations, the latest ones: a message may be left over from an earlier one.
constexpr std::uint64_t kTold = 4;

}  // namespace

std::string Core::name(int rank) const {
  const int world = members_[static_cast<std::size_t>(rank)];
  std::string text = "rank " + std::to_string(world);
  return world == rank ? text : text + " (" + std::to_string(rank) + " of its group)";
}

const comm::FlightRecorder* Core::flight_recorder(int rank) const noexcept {
  const auto at = static_cast<std::size_t>(rank);
  if (flight_recorders_[at] != nullptr || world_->remote_records() == nullptr) {
    return flight_recorders_[at];
  }
  return world_->remote_records()->find(id_, members_[at]);
}

void Core::tell_others(bool ask) noexcept {
  comm::RemoteRecords* const remote = world_->remote_records();
  const std::uint64_t first = sequence_ - std::min(sequence_, kTold) + 1;
  for (std::uint64_t one = first; remote != nullptr && one <= sequence_; ++one) {
    if (const auto mine = comm::read_record(my_flight_recorder(), one)) {
      comm::RemoteRecords::News news{.record = *mine};
      const engine::Executor::Wait wait = executor_.waiting();
      if (one == sequence_ && wait.rank >= 0) {
        news.waiting = {.peer = members_[static_cast<std::size_t>(wait.rank)],
                        .place = wait.step + 1};
        news.asks = ask;
      }
      remote->tell(members_, id_, news);
    }
  }
}

void Core::hear_others() noexcept {
  world_->remote_records()->listen();
  if (world_->remote_records()->was_asked(id_)) {
    tell_others(false);
  }
}

// A rank that waits tells what it is in; one that does not, is asked in vain.
const comm::FlightRecorder* Core::await_flight_recorder(
    int rank, const std::function<bool(const comm::FlightRecorder&)>& enough) {
  if (flight_recorders_[static_cast<std::size_t>(rank)] != nullptr) {
    return flight_recorder(rank);
  }
  tell_others(false);
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    world_->remote_records()->listen();
    const comm::FlightRecorder* const found = flight_recorder(rank);
    if ((found != nullptr && enough(*found)) || world_->aborted() ||
        std::chrono::steady_clock::now() - start > kTellingTime) {
      return found;
    }
    world_->look_for_deaths();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Core::throw_abort(const comm::Prepared* prepared) {
  end_wait();
  collective_lanes_.forsake();
  if (transfers_ != nullptr) {
    transfers_->lanes.forsake();
  }
  ErrorContext context{.rank = world_->rank()};
  if (prepared != nullptr) {
    context.collective = std::string(to_string(prepared->collective));
    context.op_seq = static_cast<std::int64_t>(sequence_);
    context.step = static_cast<int>(executor_.waiting().step) + 1;
  }
  world_->throw_abort(std::move(context));
}

// About the operation with the number of `theirs`.
void Core::raise_disagreement(int peer, const comm::OperationRecord& theirs) {
  const auto mine = comm::read_record(my_flight_recorder(), theirs.sequence);
  std::string a =
      name(rank_) + " calls " + (mine.has_value() ? comm::describe(*mine) : "another operation");
  std::string b = name(peer) + " calls " + comm::describe(theirs);
  if (peer < rank_) {
    std::swap(a, b);
  }
  std::vector<OperationRecord> calls{theirs};
  if (mine.has_value()) {
    calls.push_back(*mine);
  }
  world_->raise(ErrorCode::mismatch, members_[static_cast<std::size_t>(peer)],
                "operation #" + std::to_string(theirs.sequence) + ": " + a + "; " + b + "\n" +
                    std::string(comm::advice_on(calls)));
}

// A message that is not of this operation came from a peer: say what the peer is doing.
void Core::raise_fault() {
  const engine::Fault& fault = executor_.fault();
  const auto disagreeing =
      [&](const comm::FlightRecorder& theirs) -> std::optional<OperationRecord> {
    const auto same = comm::read_record(theirs, sequence_);
    if (same.has_value() && same->signature != signature_) {
      return same;
    }
    // Left over from an operation that this rank took for another one, and finished.
    const auto earlier = comm::find_record(theirs, fault.signature);
    return earlier.has_value() && earlier->sequence != sequence_ ? earlier : std::nullopt;
  };
  const comm::FlightRecorder* const told = await_flight_recorder(
      fault.from,
      [&](const comm::FlightRecorder& theirs) { return disagreeing(theirs).has_value(); });
  if (told != nullptr) {
    if (const auto theirs = disagreeing(*told)) {
      raise_disagreement(fault.from, *theirs);
      return;
    }
  }
  world_->raise(ErrorCode::mismatch, members_[static_cast<std::size_t>(fault.from)],
                "operation #" + std::to_string(sequence_) + ": " + name(fault.from) + " sends " +
                    name(rank_) + " another number of bytes than the " +
                    std::to_string(fault.expected) +
                    " it expects\nsend counts and receive counts must agree");
}

void Core::raise_transfer_fault() {
  world_->raise(ErrorCode::mismatch, members_[static_cast<std::size_t>(transfers().fault_peer())],
                transfers().fault());
}

// Ranks that wait for each other in different operations would wait for ever: compare what they do.
void Core::look_around() {
  const engine::Executor::Wait wait = executor_.waiting();
  note_wait({.what = comm::Waiting::What::collective, .peer = wait.rank, .place = wait.step + 1});
  if (world_->remote_records() != nullptr) {
    hear_others();
  }
  looks_ = looked_in_ == sequence_ ? looks_ + 1 : 1;
  looked_in_ = sequence_;
  if (looks_ == kLooksBeforeTelling) {
    tell_others(false);
  }
  for (int peer = 0; peer < size(); ++peer) {
    const comm::FlightRecorder* const told = flight_recorder(peer);
    const auto theirs = told == nullptr ? std::nullopt : comm::read_record(*told, sequence_);
    if (theirs.has_value() && theirs->signature != signature_) {
      raise_disagreement(peer, *theirs);
      return;
    }
  }
  for (int peer = 0; peer < size(); ++peer) {
    // Who has entered the operation has sent all that it owed before it left. Asked in this order:
    // it may do both between the two questions.
    const comm::FlightRecorder* const theirs = flight_recorders_[static_cast<std::size_t>(peer)];
    if (theirs != nullptr && world_->has_left(members_[static_cast<std::size_t>(peer)]) &&
        comm::newest_record(*theirs).sequence < sequence_) {
      raise_left(peer);
      return;
    }
  }
  // One of another host that has left and is still waited for sends nothing more.
  for (const engine::Executor::Wait& missing : executor_.waits()) {
    const auto at = static_cast<std::size_t>(missing.rank);
    if (flight_recorders_[at] == nullptr && world_->has_left(members_[at]) &&
        !leavers_.insert(missing.rank).second) {
      raise_left(missing.rank);  // its last messages would have come since the last look
      return;
    }
  }
}

void Core::look_for_leaver(int peer, int& leaver) {
  if (peer < 0 || peer == rank_ || !world_->has_left(members_[static_cast<std::size_t>(peer)])) {
    return;
  }
  if (leaver != peer) {
    leaver = peer;  // its last messages may have come since the last look
    return;
  }
  raise_left(peer);
}

void Core::raise_left(int peer) {
  world_->raise(ErrorCode::peer_lost, members_[static_cast<std::size_t>(peer)],
                name(peer) + " has left: it destroyed its communicator while " + name(rank_) +
                    " waits for it\nall ranks must make the same calls before they leave");
}

}  // namespace unisono::detail
