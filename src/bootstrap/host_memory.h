// What the ranks of one host share besides lanes and slots, byte by byte: what each is doing, why
// the world has ended, who goes on after a failure, who lives. All is zero when a group begins.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/layout.h"

namespace unisono::comm {

// What an operation is, for the messages of mismatch, timeout and death. One line, written by its
// rank alone before the operation's first message, and read by the others only when something is
// wrong: sequence, then the words, then sequence again, as in a seqlock.
inline constexpr int kFlightWords = 7;
struct alignas(shm::kLine) FlightEntry {
  std::atomic<std::uint64_t> sequence;  // of the operation, from 1; 0: being written
  std::atomic<std::uint64_t> words[kFlightWords];
};
static_assert(sizeof(FlightEntry) == shm::kLine);
inline constexpr int kFlightEntries = 32;
// What a rank waits for, once it has waited for a millisecond. For those who look from outside: a
// line that is changing may be read torn, and is right at the next look.
struct alignas(shm::kLine) WaitLine {
  std::atomic<std::int64_t> since_ns;  // CLOCK_MONOTONIC; 0: it does not wait
  std::atomic<std::uint32_t> what;     // Waiting::What
  std::atomic<std::int32_t> peer;      // in the world; -1: nobody in particular
  std::atomic<std::int64_t> place;     // a step, or a tag
};
// The same of a rank, in whichever group it waits (diagnose/world_waits.h).
struct alignas(shm::kLine) WorldWait {
  std::atomic<std::int64_t> since_ns;  // CLOCK_MONOTONIC; 0: it does not wait
  std::atomic<std::uint64_t> group;
  std::atomic<std::uint64_t> sequence;
  std::atomic<std::int64_t> place;
  std::atomic<std::uint32_t> call;  // Waiting::What, and behind it 8 bits of the collective
  std::atomic<std::int32_t> peer;
  std::atomic<std::int32_t> group_size;
  std::atomic<std::int32_t> group_first;
};
static_assert(sizeof(WorldWait) == shm::kLine);
// What a rank has last said that its calls are for (Communicator::label), for those who look from
// outside, who may read it torn: text, with zeros behind.
inline constexpr std::size_t kLabelBytes = 104;
struct alignas(shm::kLine) RankLabel {
  std::atomic<std::uint64_t> words[kLabelBytes / sizeof(std::uint64_t)];
};
// For how long a rank has waited in all, for those who look from outside.
struct alignas(shm::kLine) WaitTotals {
  std::atomic<std::uint64_t> waited_ns;
  std::atomic<std::int32_t> most_for;  // the rank of the world that it waited for most, plus 1
};
struct FlightRecorder {
  FlightEntry entries[kFlightEntries];
  WaitLine wait;
  WaitTotals totals;
  RankLabel label;  // of the calls on this group alone; empty: they have the rank's
};

// Marked by the kernel as soon as the rank's process begins to end (membership/liveness.h).
struct alignas(shm::kLine) LivenessWord {
  static constexpr std::uint32_t kMark = 0x4000'0000;
  void* next;  // of the list that the kernel walks, in that process
  std::atomic<std::uint32_t> holder;
  bool has_ended() const noexcept { return (holder.load(std::memory_order_acquire) & kMark) != 0; }
};

// The world's one abort word and the reason, written by whoever is first.
struct alignas(shm::kLine) AbortRecord {
  std::atomic<std::uint32_t> state;  // 0 none, 1 being written, 2 complete
  std::uint32_t code;
  std::int32_t rank;  // the culprit in the world, -1 none
  std::int32_t reporter;
  char text[1008];
};
static_assert(sizeof(AbortRecord) == 1024);

// What a rank has called subgroup() with, for the others that it names (diagnose/rosters.h).
inline constexpr int kRosterMembers = 22;
struct Roster {
  std::uint64_t group;  // of which it is made
  std::uint64_t id;
  std::uint64_t hash;                    // of all members
  std::int32_t count;                    // of all members
  std::int32_t members[kRosterMembers];  // the first of them, as ranks of the world
  std::int32_t unused;
};
inline constexpr int kRosterWords = 15;
static_assert(sizeof(Roster) == kRosterWords * sizeof(std::uint64_t));
struct alignas(shm::kLine) RosterEntry {
  std::atomic<std::uint64_t> version;  // 0: being written
  std::atomic<std::uint64_t> words[kRosterWords];
};
// The latest, each in the place of the oldest. `written` is the rank's own.
inline constexpr int kRosters = 32;
struct RosterBoard {
  RosterEntry entries[kRosters];
  alignas(shm::kLine) std::uint64_t written;
};

// Where the ranks of a host agree who goes on after a failure, round by round. Behind it: how far
// each rank is in the meeting that follows an answer, how many rounds each has called in, and for
// every second round who goes on.
struct alignas(shm::kLine) AgreementRecord {
  std::atomic<std::uint64_t> state;    // of the latest round: its number, and who answers it
  std::atomic<std::uint64_t> mark[2];  // random, of the answer: no two are the same
};

// Who a segment belongs to, for those who look from outside. Every member writes the same.
inline constexpr std::uint64_t kGroupMagic = 0x34'70'75'6f'72'67'6e'75;  // "ungroup4"
struct alignas(shm::kLine) GroupHeader {
  std::atomic<std::uint64_t> magic;  // last
  std::atomic<std::uint64_t> id;
  std::atomic<std::uint64_t> world;  // a hash of the name of its job
  std::atomic<std::int32_t> ranks;   // of this host
  std::atomic<std::int32_t> size;    // with those of other hosts
  std::atomic<std::int32_t> first;   // its rank 0, in the world
};
inline constexpr std::uint64_t kWorldMagic = 0x37'64'6c'72'6f'77'6e'75;  // "unworld7"
struct alignas(shm::kLine) WorldHeader {
  std::atomic<std::uint64_t> magic;  // last
  std::atomic<std::int32_t> ranks;   // of this host
  char job[48];
};

// Offsets in the segment of a group of n ranks of this host.
struct GroupLayout {
  explicit constexpr GroupLayout(int n)
      : header(0),
        members(header + sizeof(GroupHeader)),
        recorders((members + static_cast<std::size_t>(n) * sizeof(std::int32_t) + shm::kLine - 1) &
                  ~(shm::kLine - 1)),
        lanes(recorders + static_cast<std::size_t>(n) * sizeof(FlightRecorder)),
        bytes(lanes + shm::LaneLayout(n).bytes) {}
  std::size_t header;
  std::size_t members;    // [rank]: its rank in the world
  std::size_t recorders;  // [rank]
  std::size_t lanes;
  std::size_t bytes;
};

// Offsets in the segment of the world: the abort word, who is who, the agreement, the event counts,
// who lives, who waits for whom, what calls are for, who named whom in subgroup(), the first group,
// the pools.
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
  std::size_t pids;          // [rank]: as the rank knows itself
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
