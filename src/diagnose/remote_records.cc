#include "diagnose/remote_records.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/hash.h"
#include "transport/network.h"
#include "transport/transport.h"

namespace unisono::comm {
namespace {

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

constexpr std::uint64_t kGroup = Hash().add("records").value();

}  // namespace

struct RemoteRecords::Note {
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  std::uint64_t signature = 0;
  PackedRecord record = {};
  std::int64_t place = 0;
  std::int32_t waits_for = -1;
  std::int32_t asks = 0;
  std::uint32_t what = 0;  // it waits in: as in WaitTarget
  std::int32_t group_size = 0;
  std::int32_t group_first = 0;

  Note() = default;
  Note(std::uint64_t of, const Report& report)
      : group(of),
        sequence(report.record.sequence),
        signature(report.record.signature),
        record(pack(report.record)),
        place(report.waiting.place),
        waits_for(report.waiting.peer),
        asks(report.asks ? 1 : 0),
        what(static_cast<std::uint32_t>(report.waiting.what)),
        group_size(report.group_size),
        group_first(report.group_first) {}

  WaitTarget target() const {
    const auto last = static_cast<std::uint32_t>(WaitTarget::What::recv);
    return {.what = static_cast<WaitTarget::What>(std::min(what, last)),
            .peer = waits_for,
            .place = place};
  }
  WorldWaiting waiting(const FlightRecorder& recorder) const {
    const auto call = read_record(recorder, sequence);
    WaitTarget now = target();
    now.since_ns = flight_clock_ns();
    return {.group = group,
            .group_size = group_size,
            .group_first = group_first,
            .sequence = sequence,
            .collective = call ? call->collective : Collective::barrier,
            .waiting = now};
  }
};

RemoteRecords::RemoteRecords(transport::Network& network, int rank, int ranks)
    : network_(network), rank_(rank), lanes_(network.lanes(kGroup, all_ranks(ranks), rank)) {}

RemoteRecords::~RemoteRecords() = default;

void RemoteRecords::tell(std::span<const int> members, std::uint64_t group,
                         const Report& report) noexcept {
  const Note note(group, report);
  const std::lock_guard lock(mutex_);
  for (const int member : members) {
    lanes_->send(member, &note, sizeof(note), 0);  // false: it does not listen, or is on this host
  }
  lanes_->flush(transport::kEveryLane);
}

void RemoteRecords::keep_last(std::uint64_t group, const Report& report) noexcept {
  constexpr std::size_t kMostLast = transport::kMostFarewell / sizeof(Note);
  const std::lock_guard lock(mutex_);
  try {
    last_.emplace_back(group, report);
    if (last_.size() > kMostLast) {
      last_.erase(last_.begin());
    }
  } catch (const std::bad_alloc&) {
    return;  // what it would have told is missing in a message, no more
  }
}

std::string RemoteRecords::farewell() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    std::string all;
    for (const Note& note : last_) {
      all.append(reinterpret_cast<const char*>(&note), sizeof(note));
    }
    return all;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

std::string RemoteRecords::text_of(const Note& mine, int other,
                                   const OperationRecord& theirs) const {
  FlightRecorder own;
  write_record(own, mine.sequence, mine.signature, mine.record);
  const std::string me = "rank " + std::to_string(rank_);
  const std::string peer = "rank " + std::to_string(other);
  return rank_ < other ? describe_disagreement(me, newest_record(own), peer, theirs)
                       : describe_disagreement(peer, theirs, me, newest_record(own));
}

std::string RemoteRecords::last_disagreement() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    for (const Note& note : last_) {
      for (const int other : left_) {
        const auto found = flight_recorders_.find({note.group, other});
        const auto theirs = found == flight_recorders_.end()
                                ? std::nullopt
                                : read_record(*found->second, note.sequence);
        if (theirs && theirs->signature != note.signature) {
          return text_of(note, other, *theirs);
        }
      }
    }
    return late_.text;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

RemoteRecords::Late RemoteRecords::take_late_disagreement() noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(late_, {});
}

void RemoteRecords::listen() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    for (int from = 0; from < lanes_->ranks(); ++from) {
      transport::Incoming message;
      while (lanes_->peek(from, message)) {
        Note note;
        if (message.bytes == sizeof(note)) {
          std::memcpy(&note, message.data, sizeof(note));
        }
        lanes_->release(from);
        take(from, note);
      }
    }
    hear_farewells();
  } catch (const std::bad_alloc&) {
    return;  // what it told is missing in a message, no more
  }
}

// REQUIRES: the mutex.
void RemoteRecords::hear_farewells() {
  const int events = network_.events();
  if (events == events_seen_) {
    return;
  }
  events_seen_ = events;
  for (int from = 0; from < lanes_->ranks(); ++from) {
    if (!network_.has_left(from) || !left_.insert(from).second) {
      continue;
    }
    const std::string farewell = network_.farewell_of(from);
    for (std::size_t at = 0; at + sizeof(Note) <= farewell.size(); at += sizeof(Note)) {
      Note note;
      std::memcpy(&note, farewell.data() + at, sizeof(note));
      take(from, note);
    }
  }
}

// REQUIRES: the mutex.
void RemoteRecords::take(int from, const Note& note) {
  const bool known = flight_recorders_.contains({note.group, from});
  if (note.sequence == 0 || (!known && flight_recorders_.size() >= kMostFlightRecorders)) {
    return;
  }
  auto& recorder = flight_recorders_[{note.group, from}];
  if (recorder == nullptr) {
    recorder = std::make_unique<FlightRecorder>();
  }
  write_record(*recorder, note.sequence, note.signature, note.record);
  end_wait(*recorder);
  const auto kept = std::find_if(last_.begin(), last_.end(), [&](const Note& mine) {
    return mine.group == note.group && mine.sequence == note.sequence;
  });
  const auto theirs = read_record(*recorder, note.sequence);
  if (late_.rank < 0 && kept != last_.end() && theirs && theirs->signature != kept->signature) {
    late_ = {.rank = from, .text = text_of(*kept, from, *theirs)};
  }
  if (note.waits_for >= 0) {
    write_wait(*recorder, note.target());
    waits_[from] = note.waiting(*recorder);
  }
  if (note.asks != 0) {
    asked_.insert(note.group);
    askers_.insert(from);
  }
}

std::vector<int> RemoteRecords::take_askers() {
  const std::lock_guard lock(mutex_);
  const std::set<int> askers = std::exchange(askers_, {});
  return {askers.begin(), askers.end()};
}

std::optional<WorldWaiting> RemoteRecords::wait_of(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = waits_.find(rank);
  return found == waits_.end() ? std::nullopt : std::optional(found->second);
}

bool RemoteRecords::was_asked(std::uint64_t group) noexcept {
  const std::lock_guard lock(mutex_);
  return asked_.erase(group) != 0;
}

const FlightRecorder* RemoteRecords::find(std::uint64_t group, int rank) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = flight_recorders_.find({group, rank});
  return found == flight_recorders_.end() ? nullptr : found->second.get();
}

void RemoteRecords::forget(std::uint64_t group) noexcept {
  const std::lock_guard lock(mutex_);
  asked_.erase(group);
  flight_recorders_.erase(flight_recorders_.lower_bound({group, 0}),
                          flight_recorders_.upper_bound({group, 1 << 30}));
}

}  // namespace unisono::comm
