#include "diagnose/remote_records.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "transport/network.h"
#include "transport/transport.h"

namespace unisono::comm {
namespace {

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

struct RemoteRecords::Note {
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  std::uint64_t signature = 0;
  PackedRecord record = {};
  std::uint64_t asks = 0;

  Note() = default;
  Note(std::uint64_t of, const Report& report)
      : group(of),
        sequence(report.record.sequence),
        signature(report.record.signature),
        record(pack(report.record)),
        asks(report.asks ? 1 : 0) {}
};

// Receivers distinguish the two structs by their sizes.
struct RemoteRecords::WaitNote {
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;
  std::int64_t name_ns = 0;
  std::uint64_t behind = 0;
  std::int64_t place = 0;
  std::uint32_t call = 0;
  std::int32_t peer = -1;
  std::int32_t group_size = 0;
  std::int32_t group_first = 0;
  enum class Kind : std::int32_t { report, question, answer };
  Kind kind = Kind::report;
  std::int32_t has_entered = 0;  // this and the following members are used in answers only
  Question question = {};
  transport::Frames frames = {};

  WaitNote() = default;
  WaitNote(const WorldWaiting& waiting, Kind which)
      : group(waiting.group),
        sequence(waiting.sequence),
        name_ns(waiting.name_ns),
        behind(waiting.behind.code()),
        place(waiting.waiting.place),
        call(code_of(waiting)),
        peer(waiting.waiting.peer),
        group_size(waiting.group_size),
        group_first(waiting.group_first),
        kind(which) {}

  WorldWaiting waiting(int ranks) const {
    WorldWaiting found{.group = group,
                       .group_size = group_size,
                       .group_first = group_first,
                       .sequence = sequence,
                       .waiting = {.peer = peer < ranks ? peer : -1,
                                   .place = place,
                                   .since_ns = flight_clock_ns()},
                       .name_ns = name_ns,
                       .behind = Behind::of(behind)};
    set_code(found, call);
    return found;
  }
};

RemoteRecords::RemoteRecords(transport::Network& network, int rank, int ranks)
    : network_(network),
      rank_(rank),
      lanes_(network.lanes(transport::kReportGroup, all_ranks(ranks), rank)) {}

RemoteRecords::~RemoteRecords() = default;

void RemoteRecords::tell(std::span<const int> members, std::uint64_t group,
                         const Report& report) noexcept {
  static_assert(sizeof(Note) != sizeof(WaitNote));
  const Note note(group, report);
  send(members, &note, sizeof(note));
}

void RemoteRecords::tell_wait(std::span<const int> ranks, const WorldWaiting& waiting,
                              bool ask) noexcept {
  const WaitNote note(waiting, ask ? WaitNote::Kind::question : WaitNote::Kind::report);
  send(ranks, &note, sizeof(note));
}

void RemoteRecords::answer(int rank, const WorldWaiting& waiting, const Answer& answer) noexcept {
  WaitNote note(waiting, WaitNote::Kind::answer);
  note.has_entered = answer.has_entered ? 1 : 0;
  note.question = answer.question;
  note.frames = answer.frames;
  send({&rank, 1}, &note, sizeof(note));
}

void RemoteRecords::send(std::span<const int> ranks, const void* note, std::size_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks) {
    lanes_->send(rank, note, bytes, 0);  // false: the rank does not listen, or is on this host
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
    return;  // an error text will only have less information
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
        WaitNote wait;
        const bool is_wait = message.bytes == sizeof(wait);
        if (is_wait) {
          std::memcpy(&wait, message.data, sizeof(wait));
        } else if (message.bytes == sizeof(note)) {
          std::memcpy(&note, message.data, sizeof(note));
        }
        lanes_->release(from);
        if (is_wait) {
          take(from, wait);
        } else {
          take(from, note);
        }
      }
    }
    hear_farewells();
  } catch (const std::bad_alloc&) {
    return;  // an error text will only have less information
  }
}

// REQUIRES: mutex_ is held.
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

// REQUIRES: mutex_ is held.
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
  const auto kept = std::find_if(last_.begin(), last_.end(), [&](const Note& mine) {
    return mine.group == note.group && mine.sequence == note.sequence;
  });
  const auto theirs = read_record(*recorder, note.sequence);
  if (late_.rank < 0 && kept != last_.end() && theirs && theirs->signature != kept->signature) {
    late_ = {.rank = from, .text = text_of(*kept, from, *theirs)};
  }
  if (note.asks != 0) {
    asked_.insert(note.group);
  }
}

// REQUIRES: mutex_ is held.
void RemoteRecords::take(int from, const WaitNote& note) {
  Told& told = waits_[from];
  told.waiting = note.waiting(lanes_->ranks());
  if (note.kind == WaitNote::Kind::answer) {
    told.answer = {.name_ns = note.name_ns,
                   .question = note.question,
                   .has_entered = note.has_entered != 0,
                   .frames = note.frames};
  } else if (note.kind == WaitNote::Kind::question) {
    const bool is_collective = told.waiting.waiting.what == WaitTarget::What::collective;
    questions_[from] = {.group = note.group, .sequence = is_collective ? note.sequence : 0};
  }
}

std::map<int, Question> RemoteRecords::take_questions() {
  const std::lock_guard lock(mutex_);
  return std::exchange(questions_, {});
}

Answer RemoteRecords::answer_of(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = waits_.find(rank);
  const bool is_current =
      found != waits_.end() && found->second.answer.name_ns == found->second.waiting.name_ns;
  return is_current ? found->second.answer : Answer{};
}

bool RemoteRecords::has_entered(const Question& question) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = own_.find(question.group);
  return found == own_.end() || newest_sequence(*found->second) >= question.sequence;
}

void RemoteRecords::join(std::uint64_t group, const FlightRecorder& recorder) {
  const std::lock_guard lock(mutex_);
  own_[group] = &recorder;
}

std::optional<WorldWaiting> RemoteRecords::wait_of(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = waits_.find(rank);
  return found == waits_.end() ? std::nullopt : std::optional(found->second.waiting);
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
  own_.erase(group);
  asked_.erase(group);
  flight_recorders_.erase(flight_recorders_.lower_bound({group, 0}),
                          flight_recorders_.upper_bound({group, 1 << 30}));
}

}  // namespace unisono::comm
