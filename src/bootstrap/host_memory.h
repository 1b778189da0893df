// The memory that the ranks on one host share besides lanes and slots, byte by byte: each rank's
// activity, the reason why the world has ended, the agreement after a failure, and liveness. All
// bytes are zero when a group begins.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/layout.h"
#include "unisono/types.hpp"

namespace unisono::comm {

// Describes an operation in one cache line, for error texts about mismatches, timeouts and deaths.
// A line belongs to one rank. Only this rank writes the line, before the operation's first message.
// Other ranks read the line only if something is wrong. As in a seqlock, the line has the sequence,
// the words, and the sequence again.
inline constexpr int kFlightWords = 7;
struct alignas(shm::kLine) FlightEntry {
  std::atomic<std::uint64_t> sequence;  // of the operation, from 1; 0: being written
  std::atomic<std::uint64_t> words[kFlightWords];
};
static_assert(sizeof(FlightEntry) == shm::kLine);
inline constexpr int kFlightEntries = 32;
// The reason for a wait that has lasted at least a millisecond, for observers outside the process.
// A reader may see a line while it changes; the next read is right.
struct alignas(shm::kLine) WaitLine {
  std::atomic<std::int64_t> since_ns;  // CLOCK_MONOTONIC; 0: it does not wait
  std::atomic<std::uint32_t> what;     // Waiting::What
  std::atomic<std::int32_t> peer;      // world rank; -1: no particular rank
  std::atomic<std::int64_t> place;     // a step, or a tag
  std::atomic<std::int32_t> most_for;  // the world rank that it has waited for most, plus 1
};
// A rank's wait in any of its groups (diagnose/world_waits.h).
struct alignas(shm::kLine) WorldWait {
  std::atomic<std::int64_t> since_ns;  // CLOCK_MONOTONIC; 0: it does not wait
  std::atomic<std::uint64_t> group;
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::int64_t> place;
  std::atomic<std::uint32_t> call;  // comm::code_of() the wait
  std::atomic<std::int32_t> peer;
  std::atomic<std::int32_t> group_size;
  std::atomic<std::int32_t> group_first;
  std::atomic<std::uint64_t> behind;  // comm::Behind::code()
};
static_assert(sizeof(WorldWait) == shm::kLine);
// A rank's current label (Communicator::label), padded with zeros, for observers outside the
// process. An observer may read a mixture of two labels.
inline constexpr std::size_t kLabelBytes = 104;
struct alignas(shm::kLine) RankLabel {
  std::atomic<std::uint64_t> words[kLabelBytes / sizeof(std::uint64_t)];
};
struct FlightRecorder {
  FlightEntry entries[kFlightEntries];
  WaitLine wait;
  RankLabel label;  // of the calls on this group only; empty: the rank's label
};
// The cost of one kind of call to a rank, since the rank's group was made. One thread at a time
// writes it; observers outside the process may read it. Only since_ns may decrease.
struct alignas(shm::kLine) CallCounts {
  std::atomic<std::uint64_t> calls;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> short_calls;  // blocking calls that are short
  std::atomic<std::uint64_t> short_timed;  // those that short_ns includes
  std::atomic<std::uint64_t> short_ns;     // each timed call stands for the ones before it
  std::atomic<std::uint64_t> long_ns;
  std::atomic<std::uint64_t> waited_ns;
  std::atomic<std::int64_t> since_ns;  // the wait in progress, CLOCK_MONOTONIC; 0: there is none
};
static_assert(sizeof(CallCounts) == shm::kLine);
// Kinds of calls: first the collectives by number, then these.
inline constexpr int kSendKind = kCollectiveCount;
inline constexpr int kRecvKind = kCollectiveCount + 1;
inline constexpr int kCallKinds = kCollectiveCount + 2;

// The kernel marks this word when the rank's process begins to end (membership/liveness.h).
struct alignas(shm::kLine) LivenessWord {
  static constexpr std::uint32_t kMark = 0x4000'0000;
  void* next;  // of the list that the kernel walks, in that process
  std::atomic<std::uint32_t> holder;
  bool has_ended() const noexcept { return (holder.load(std::memory_order_acquire) & kMark) != 0; }
};

// The world's only abort word, and the reason. The first rank that aborts writes both.
struct alignas(shm::kLine) AbortRecord {
  std::atomic<std::uint32_t> state;  // 0 none, 1 being written, 2 complete
  std::uint32_t code;
  std::int32_t rank;  // the culprit in the world, -1: none
  std::int32_t reporter;
  char text[1008];
};
static_assert(sizeof(AbortRecord) == 1024);

// A call of subgroup(), which the other members check (diagnose/rosters.h).
inline constexpr int kRosterMembers = 22;
struct Roster {
  std::uint64_t group;  // the parent group
  std::uint64_t id;
  std::uint64_t hash;                    // of all members
  std::int32_t count;                    // of all members
  std::int32_t members[kRosterMembers];  // the first members, as world ranks
  std::int32_t unused;
};
inline constexpr int kRosterWords = 15;
static_assert(sizeof(Roster) == kRosterWords * sizeof(std::uint64_t));
struct alignas(shm::kLine) RosterEntry {
  std::atomic<std::uint64_t> version;  // 0: being written
  std::atomic<std::uint64_t> words[kRosterWords];
};
// The latest rosters; a new roster replaces the oldest one. Only the rank itself uses `written`.
inline constexpr int kRosters = 32;
struct RosterBoard {
  RosterEntry entries[kRosters];
  alignas(shm::kLine) std::uint64_t written;
};

// The rounds in which a host's ranks agree on the ranks that continue after a failure. Three arrays
// follow this record: each rank's progress in the meeting after an answer, the number of rounds
// that each rank has called, and two alternating sets of answers.
struct alignas(shm::kLine) AgreementRecord {
  std::atomic<std::uint64_t> state;    // of the latest round: its number and the rank that answers
  std::atomic<std::uint64_t> mark[2];  // random and unique for each answer
};

// Identifies a segment and its owner for observers outside the process. Every member writes the
// same value.
inline constexpr std::uint64_t kGroupMagic = 0x35'70'75'6f'72'67'6e'75;  // "ungroup5"
struct alignas(shm::kLine) GroupHeader {
  std::atomic<std::uint64_t> magic;  // written last
  std::atomic<std::uint64_t> id;
  std::atomic<std::uint64_t> world;  // a hash of the job's name
  std::atomic<std::int32_t> ranks;   // on this host
  std::atomic<std::int32_t> size;    // with those on other hosts
  std::atomic<std::int32_t> first;   // the world rank of the group's rank 0
};
inline constexpr std::uint64_t kWorldMagic = 0x38'64'6c'72'6f'77'6e'75;  // "unworld8"
struct alignas(shm::kLine) WorldHeader {
  std::atomic<std::uint64_t> magic;  // written last
  std::atomic<std::int32_t> ranks;   // on this host
  char job[48];
};

// Offsets in the segment of a group with n ranks on this host.
struct GroupLayout {
  explicit constexpr GroupLayout(int n)
      : header(0),
        members(header + sizeof(GroupHeader)),
        recorders((members + static_cast<std::size_t>(n) * sizeof(std::int32_t) + shm::kLine - 1) &
                  ~(shm::kLine - 1)),
        calls(recorders + static_cast<std::size_t>(n) * sizeof(FlightRecorder)),
        waits(calls + static_cast<std::size_t>(n) * kCallKinds * sizeof(CallCounts)),
        waits_row((static_cast<std::size_t>(n) * sizeof(std::uint64_t) + shm::kLine - 1) &
                  ~(shm::kLine - 1)),
        lanes(waits + static_cast<std::size_t>(n) * waits_row),
        bytes(lanes + shm::LaneLayout(n).bytes) {}
  std::size_t header;
  std::size_t members;    // [rank]: its world rank
  std::size_t recorders;  // [rank]
  std::size_t calls;      // [rank][kind]: CallCounts
  std::size_t waits;      // [rank][rank]: for how long (ns) the first has waited for the second
  std::size_t waits_row;  // bytes
  std::size_t lanes;
  std::size_t bytes;
};

// Offsets in the segment of the world: the abort word, process ids, the agreement, event counts,
// liveness, waits, labels, rosters, the first group, the pools.
struct WorldLayout {
  explicit constexpr WorldLayout(int n)
      : header(sizeof(AbortRecord)),
        pids(header + sizeof(WorldHeader)),
        agreement((pids + static_cast<std::size_t>(n) * sizeof(std::int32_t) + shm::kLine - 1) &
                  ~(shm::kLine - 1)),
        meetings(agreement + sizeof(AgreementRecord)),
        calls(meetings + static_cast<std::size_t>(n) * sizeof(std::uint64_t)),
        verdicts(calls + static_cast<std::size_t>(n) * sizeof(std::uint32_t)),
        event_counts((verdicts + 2 * static_cast<std::size_t>(n) + shm::kLine - 1) &
                     ~(shm::kLine - 1)),
        liveness(event_counts + shm::EventCountLayout(n).bytes),
        waits(liveness + static_cast<std::size_t>(n) * sizeof(LivenessWord)),
        labels(waits + static_cast<std::size_t>(n) * sizeof(WorldWait)),
        rosters(labels + static_cast<std::size_t>(n) * sizeof(RankLabel)),
        group((rosters + static_cast<std::size_t>(n) * sizeof(RosterBoard) + 4095) &
              ~std::size_t{4095}),
        pools((group + GroupLayout(n).bytes + 4095) & ~std::size_t{4095}),
        bytes(pools + static_cast<std::size_t>(n) * shm::kPoolBytes) {}
  std::size_t header;
  std::size_t pids;          // [rank]: its own view
  std::size_t agreement;     // the AgreementRecord
  std::size_t meetings;      // [rank]
  std::size_t calls;         // [rank]
  std::size_t verdicts;      // [round & 1][rank]: bytes
  std::size_t event_counts;  // shm::EventCountLayout
  std::size_t liveness;      // [rank]
  std::size_t waits;         // [rank]: WorldWait
  std::size_t labels;        // [rank]: RankLabel
  std::size_t rosters;       // [rank]: RosterBoard
  std::size_t group;
  std::size_t pools;  // [rank]
  std::size_t bytes;
};

}  // namespace unisono::comm
