#include "diagnose/remote_records.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "base/hash.h"
#include "transport/network.h"
#include "transport/transport.h"

namespace unisono::comm {
namespace {

struct Note {
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  std::uint64_t signature = 0;
  PackedRecord record = {};
  std::int64_t place = 0;
  std::int32_t waits_for = -1;
  std::int32_t asks = 0;
  std::int32_t group_size = 0;
  std::int32_t group_first = 0;
};

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

WorldWaiting waiting_of(const Note& note, const FlightRecorder& recorder) {
  const auto record = read_record(recorder, note.sequence);
  return {.group = note.group,
          .group_size = note.group_size,
          .group_first = note.group_first,
          .sequence = note.sequence,
          .collective = record ? record->collective : Collective::barrier,
          .waiting = {.peer = note.waits_for, .place = note.place, .since_ns = flight_clock_ns()}};
}

constexpr std::uint64_t kGroup = Hash().add("records").value();

}  // namespace

RemoteRecords::RemoteRecords(transport::Network& network, int rank, int ranks)
    : lanes_(network.lanes(kGroup, all_ranks(ranks), rank)) {}

RemoteRecords::~RemoteRecords() = default;

void RemoteRecords::tell(std::span<const int> members, std::uint64_t group,
                         const Report& report) noexcept {
  const Note note{.group = group,
                  .sequence = report.record.sequence,
                  .signature = report.record.signature,
                  .record = pack(report.record),
                  .place = report.waiting.place,
                  .waits_for = report.waiting.peer,
                  .asks = report.asks ? 1 : 0,
                  .group_size = report.group_size,
                  .group_first = report.group_first};
  const std::lock_guard lock(mutex_);
  for (const int member : members) {
    lanes_->send(member, &note, sizeof(note), 0);  // false: it does not listen, or is on this host
  }
  lanes_->flush(transport::kEveryLane);
}

void RemoteRecords::listen() noexcept {
  const std::lock_guard lock(mutex_);
  for (int from = 0; from < lanes_->ranks(); ++from) {
    transport::Incoming message;
    while (lanes_->peek(from, message)) {
      Note note;
      if (message.bytes == sizeof(note)) {
        std::memcpy(&note, message.data, sizeof(note));
      }
      lanes_->release(from);
      const bool known = flight_recorders_.contains({note.group, from});
      if (note.sequence == 0 || (!known && flight_recorders_.size() >= kMostFlightRecorders)) {
        continue;
      }
      try {
        auto& recorder = flight_recorders_[{note.group, from}];
        if (recorder == nullptr) {
          recorder = std::make_unique<FlightRecorder>();
        }
        write_record(*recorder, note.sequence, note.signature, note.record);
        end_wait(*recorder);
        if (note.waits_for >= 0) {
          write_wait(*recorder, {.peer = note.waits_for, .place = note.place});
          waits_[from] = waiting_of(note, *recorder);
        }
        if (note.asks != 0) {
          asked_.insert(note.group);
          askers_.insert(from);
        }
      } catch (const std::bad_alloc&) {
        return;  // the report is then missing in a message; nothing else
      }
    }
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
