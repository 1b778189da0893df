#include "diagnose/remote_records.h"

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
        group_size(report.group_size),
        group_first(report.group_first) {}

  WorldWaiting waiting(const FlightRecorder& recorder) const {
    const auto call = read_record(recorder, sequence);
    return {.group = group,
            .group_size = group_size,
            .group_first = group_first,
            .sequence = sequence,
            .collective = call ? call->collective : Collective::barrier,
            .waiting = {.peer = waits_for, .place = place, .since_ns = flight_clock_ns()}};
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

std::string RemoteRecords::last_disagreement() noexcept {
  const std::lock_guard lock(mutex_);
  try {
    for (const Note& note : last_) {
      for (const int other : left_) {
        const auto found = flight_recorders_.find({note.group, other});
        const auto theirs = found == flight_recorders_.end()
                                ? std::nullopt
                                : read_record(*found->second, note.sequence);
        if (!theirs || theirs->signature == note.signature) {
          continue;
        }
        FlightRecorder own;
        write_record(own, note.sequence, note.signature, note.record);
        const auto call_of = [](int rank, const OperationRecord& call) {
          return "rank " + std::to_string(rank) + " calls " + describe(call);
        };
        const OperationRecord mine = newest_record(own);
        return "operation #" + std::to_string(note.sequence) + ": " +
               (rank_ < other ? call_of(rank_, mine) + "; " + call_of(other, *theirs)
                              : call_of(other, *theirs) + "; " + call_of(rank_, mine));
      }
    }
  } catch (const std::bad_alloc&) {
    return {};
  }
  return {};
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
  if (note.waits_for >= 0) {
    write_wait(*recorder, {.peer = note.waits_for, .place = note.place});
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
