// What lies in shared memory, byte by byte. Everything is zero when a group begins.
//
// A lane is a ring of cells of one cache line. A message is one or more consecutive cells; each
// cell carries its own sequence flag, written last, so that a short message costs one cache-line
// transfer:
//
//   first cell   | header 8 B | signature 8 B | 48 B of payload |
//   next cells   | header 8 B | 56 B of payload                 |
//   header       | sequence 32 | bytes 16 | kind 8 | cells 8    |   (low bits first)
//
// The sequence of a cell is its position in the lane, from 1, modulo 2^32; 0 never occurs in a
// fresh ring because a ring is a power of two of cells and position p lies in cell p mod kCells. A
// message of more than kInlineBytes carries a Reference instead of its bytes: to a slot of the
// writer's pool, to registered memory, or to any memory of the writer's process (an offer). The
// reader counts the cells it has released in `head`, its own line; so the writer knows which cells,
// slots and shared buffers are free again. Of cells that held bytes it may say so a few messages
// later.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace unisono::shm {

inline constexpr std::size_t kLine = 64;
inline constexpr std::uint32_t kCells = 32;
// How many released cells a reader may keep to itself: a writer always finds room for two
// operations of a small program (bound_program.h), and for one message of any kind.
inline constexpr std::uint32_t kUntoldCells = 7;
inline constexpr std::size_t kFirstPayload = 48;
inline constexpr std::size_t kNextPayload = 56;
inline constexpr std::size_t kInlineCells = 5;
static_assert(kUntoldCells + kInlineCells <= kCells, "a writer would wait for what is only untold");
inline constexpr std::size_t kInlineBytes = kFirstPayload + (kInlineCells - 1) * kNextPayload;
inline constexpr std::size_t kSlotBytes = std::size_t{64} << 10;
inline constexpr std::uint32_t kSlotsPerRank = 512;
// A rank goes through this many before it uses one again (pool.h): 2 MiB, more than a core's own
// cache and a small part of the one that it shares.
inline constexpr std::uint32_t kSlotsPerRound = 32;
// How many slots one lane may hold at once: enough to keep both ends busy, few enough to stay in
// the cache.
inline constexpr std::uint32_t kSlotsPerLane = 4;
inline constexpr std::size_t kPoolBytes = kSlotBytes * kSlotsPerRank;

enum class Kind : std::uint8_t { bytes = 1, slot = 2, region = 3, offer = 4 };

struct alignas(kLine) Cell {
  std::atomic<std::uint64_t> header;
  std::uint64_t signature;
  std::byte payload[kFirstPayload];

  std::byte* next_payload() { return reinterpret_cast<std::byte*>(&signature); }
  const std::byte* next_payload() const { return reinterpret_cast<const std::byte*>(&signature); }
};
static_assert(sizeof(Cell) == kLine);

struct Reference {
  std::uint64_t bytes;
  std::uint64_t offset;   // in bytes: in the writer's pool, or in its region
  std::uint64_t address;  // in the writer's address space: of an offer, and for its own threads
  std::uint32_t region;   // number of the writer's region
  std::uint32_t reserved;
};
static_assert(sizeof(Reference) <= kFirstPayload);

struct alignas(kLine) Head {
  std::atomic<std::uint32_t> cells;
};

struct Ring {
  Cell cells[kCells];
};

constexpr std::uint64_t make_header(std::uint32_t sequence, std::size_t bytes, Kind kind,
                                    std::uint32_t cells) {
  return sequence | (static_cast<std::uint64_t>(bytes) << 32) |
         (static_cast<std::uint64_t>(kind) << 48) | (static_cast<std::uint64_t>(cells) << 56);
}
constexpr std::uint32_t header_sequence(std::uint64_t header) {
  return static_cast<std::uint32_t>(header);
}
constexpr std::size_t header_bytes(std::uint64_t header) {
  return (header >> 32) & 0xffffU;
}
constexpr Kind header_kind(std::uint64_t header) {
  return static_cast<Kind>((header >> 48) & 0xffU);
}
constexpr std::uint32_t header_cells(std::uint64_t header) {
  return static_cast<std::uint32_t>(header >> 56);
}

// What an operation is, for the messages of mismatch, timeout and death. One line, written by its
// rank alone before the operation's first message, and read by the others only when something is
// wrong: sequence, then the words, then sequence again, as in a seqlock.
inline constexpr int kBoardWords = 7;
struct alignas(kLine) BoardEntry {
  std::atomic<std::uint64_t> sequence;  // of the operation, from 1; 0: being written
  std::atomic<std::uint64_t> words[kBoardWords];
};
static_assert(sizeof(BoardEntry) == kLine);
inline constexpr int kBoardEntries = 32;
// What a rank waits for, once it has waited for a millisecond. For those who look from outside: a
// line that is changing may be read torn, and is right at the next look.
struct alignas(kLine) WaitLine {
  std::atomic<std::int64_t> since_ns;  // CLOCK_MONOTONIC; 0: it does not wait
  std::atomic<std::uint32_t> what;     // comm::Waiting::What
  std::atomic<std::int32_t> peer;      // in the world; -1: nobody in particular
  std::atomic<std::int64_t> place;     // a step, or a tag
};
struct Board {
  BoardEntry entries[kBoardEntries];
  WaitLine wait;
};

// A rank's bell: `sleeping` counts its threads that may be in a futex wait on `rings`.
struct alignas(kLine) Bell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleeping;
  std::atomic<std::uint32_t> left;  // 1: the rank closed its world in good order
};

// Marked by the kernel as soon as the rank's process begins to end (membership/liveness.h).
struct alignas(kLine) Life {
  static constexpr std::uint32_t kMark = 0x4000'0000;
  void* next;  // of the list that the kernel walks, in that process
  std::atomic<std::uint32_t> holder;
  bool has_ended() const noexcept { return (holder.load(std::memory_order_acquire) & kMark) != 0; }
};

// The world's one abort word and the reason, written by whoever is first.
struct alignas(kLine) AbortRecord {
  std::atomic<std::uint32_t> state;  // 0 none, 1 being written, 2 complete
  std::uint32_t code;
  std::int32_t rank;  // the culprit in the world, -1 none
  std::int32_t reporter;
  char text[1008];
};
static_assert(sizeof(AbortRecord) == 1024);

// Where the ranks of a host agree who goes on after a failure, round by round. Behind it: how far
// each rank is in the meeting that follows an answer, how many rounds each has called in, and for
// every second round who goes on.
struct alignas(kLine) RollRecord {
  std::atomic<std::uint64_t> state;    // of the latest round: its number, and who answers it
  std::atomic<std::uint64_t> mark[2];  // random, of the answer: no two are the same
};

// Who a segment belongs to, for those who look from outside. Every member writes the same.
inline constexpr std::uint64_t kGroupMagic = 0x32'70'75'6f'72'67'6e'75;  // "ungroup2"
struct alignas(kLine) GroupHeader {
  std::atomic<std::uint64_t> magic;  // last
  std::atomic<std::uint64_t> id;
  std::atomic<std::uint64_t> world;  // a hash of the name of its job
  std::atomic<std::int32_t> ranks;   // of this host
  std::atomic<std::int32_t> size;    // with those of other hosts
  std::atomic<std::int32_t> first;   // its rank 0, in the world
};
inline constexpr std::uint64_t kWorldMagic = 0x33'64'6c'72'6f'77'6e'75;  // "unworld3"
struct alignas(kLine) WorldHeader {
  std::atomic<std::uint64_t> magic;  // last
  std::atomic<std::int32_t> ranks;   // of this host
  char job[48];
};

// Offsets in the segment of a group of n ranks of this host.
struct GroupLayout {
  explicit constexpr GroupLayout(int n)
      : ranks(static_cast<std::size_t>(n)),
        header(0),
        members(header + sizeof(GroupHeader)),
        boards((members + ranks * sizeof(std::int32_t) + kLine - 1) & ~(kLine - 1)),
        rings(boards + ranks * sizeof(Board)),
        heads(rings + 2 * ranks * ranks * sizeof(Ring)),
        multicast_rings(heads + 2 * ranks * ranks * sizeof(Head)),
        multicast_heads(multicast_rings + ranks * sizeof(Ring)),
        bytes(multicast_heads + ranks * ranks * sizeof(Head)) {}
  std::size_t ranks;
  std::size_t header;
  std::size_t members;          // [rank]: its rank in the world
  std::size_t boards;           // [rank]
  std::size_t rings;            // [use][from][to]; use 0: collectives, 1: send and recv
  std::size_t heads;            // [use][from][to]
  std::size_t multicast_rings;  // [from]
  std::size_t multicast_heads;  // [from][to]
  std::size_t bytes;
};

// Offsets in the segment of the world: the abort word, who is who, the roll, the bells, the lives,
// the first group, the pools.
struct WorldLayout {
  explicit constexpr WorldLayout(int n)
      : header(sizeof(AbortRecord)),
        pids(header + sizeof(WorldHeader)),
        roll((pids + static_cast<std::size_t>(n) * sizeof(std::int32_t) + kLine - 1) &
             ~(kLine - 1)),
        meetings(roll + sizeof(RollRecord)),
        calls(meetings + static_cast<std::size_t>(n) * sizeof(std::uint64_t)),
        verdicts(calls + static_cast<std::size_t>(n) * sizeof(std::uint32_t)),
        sleepers((verdicts + 2 * static_cast<std::size_t>(n) + kLine - 1) & ~(kLine - 1)),
        bells(sleepers + kLine),
        lives(bells + static_cast<std::size_t>(n) * sizeof(Bell)),
        group((lives + static_cast<std::size_t>(n) * sizeof(Life) + 4095) & ~std::size_t{4095}),
        pools((group + GroupLayout(n).bytes + 4095) & ~std::size_t{4095}),
        bytes(pools + static_cast<std::size_t>(n) * kPoolBytes) {}
  std::size_t header;
  std::size_t pids;      // [rank]: as the rank knows itself
  std::size_t roll;      // the RollRecord
  std::size_t meetings;  // [rank]
  std::size_t calls;     // [rank]
  std::size_t verdicts;  // [round & 1][rank]: bytes
  std::size_t sleepers;  // how many ranks may sleep: one word that every sender reads
  std::size_t bells;     // [rank]
  std::size_t lives;     // [rank]
  std::size_t group;
  std::size_t pools;  // [rank]
  std::size_t bytes;
};

}  // namespace unisono::shm
