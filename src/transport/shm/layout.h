// The layout of lanes, slots and event counts in shared memory, byte by byte. All bytes are zero
// when a group begins.
//
// A lane is a ring of cells of one cache line. A message is one or more consecutive cells; each
// cell has its own sequence flag, written last, so that a short message costs one cache-line
// transfer:
//
//   first cell   | header 8 B | signature 8 B | 48 B of payload |
//   next cells   | header 8 B | 56 B of payload                 |
//   header       | sequence 32 | bytes 16 | kind 8 | cells 8    |   (low bits first)
//
// The sequence of a cell is its position in the lane, counted from 1, modulo 2^32; position p lies
// in cell p mod kCells. In a new ring no cell ever has sequence 0, because kCells is a power of
// two. A message longer than kInlineBytes carries a Reference instead of its bytes. The Reference
// names a slot of the writer's pool, registered memory, or (in an offer) any memory of the writer's
// process. The reader counts the cells that it has released in `head`, which has a line of its own.
// From this count the writer learns which cells, slots and shared buffers are free again. For cells
// that held bytes, the count may lag by a few messages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace unisono::shm {

inline constexpr std::size_t kLine = 64;
inline constexpr std::uint32_t kCells = 32;
// Maximum number of released cells that a reader may leave unreported. With this limit a writer
// always finds room for two operations of a small program (bound_program.h), and for one message of
// any kind.
inline constexpr std::uint32_t kUnreportedCells = 7;
inline constexpr std::size_t kFirstPayload = 48;
inline constexpr std::size_t kNextPayload = 56;
inline constexpr std::size_t kInlineCells = 5;
static_assert(kUnreportedCells + kInlineCells <= kCells,
              "a writer would wait for what is only unreported");
inline constexpr std::size_t kInlineBytes = kFirstPayload + (kInlineCells - 1) * kNextPayload;
inline constexpr std::size_t kSlotBytes = std::size_t{64} << 10;
inline constexpr std::uint32_t kSlotsPerRank = 512;
// Number of slots that a rank uses before it reuses one (pool.h). They take 2 MiB, which is more
// than a core's private cache and a small part of the shared cache.
inline constexpr std::uint32_t kSlotsPerRound = 32;
// Maximum number of slots that one lane may hold at once: enough to keep both ends busy, and few
// enough to stay in the cache.
inline constexpr std::uint32_t kSlotsPerLane = 4;
inline constexpr std::size_t kLaneBytes = kSlotsPerLane * kSlotBytes;
inline constexpr std::size_t kPoolBytes = kSlotBytes * kSlotsPerRank;

enum class CellKind : std::uint8_t { bytes = 1, slot = 2, region = 3, offer = 4 };

struct alignas(kLine) LaneCell {
  std::atomic<std::uint64_t> header;
  std::uint64_t signature;
  std::byte payload[kFirstPayload];

  std::byte* next_payload() { return reinterpret_cast<std::byte*>(&signature); }
  const std::byte* next_payload() const { return reinterpret_cast<const std::byte*>(&signature); }
};
static_assert(sizeof(LaneCell) == kLine);

struct Reference {
  std::uint64_t bytes;
  std::uint64_t offset;   // in bytes: in the writer's pool, or in its region
  std::uint64_t address;  // in the writer's address space: for an offer, and for its own threads
  std::uint32_t region;   // number of the writer's region
  std::uint32_t reserved;
};
static_assert(sizeof(Reference) <= kFirstPayload);

struct alignas(kLine) Head {
  std::atomic<std::uint32_t> cells;
};

struct Ring {
  LaneCell cells[kCells];
};

constexpr std::uint64_t make_header(std::uint32_t sequence, std::size_t bytes, CellKind kind,
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
constexpr CellKind header_kind(std::uint64_t header) {
  return static_cast<CellKind>((header >> 48) & 0xffU);
}
constexpr std::uint32_t header_cells(std::uint64_t header) {
  return static_cast<std::uint32_t>(header >> 56);
}

// An object that a rank sleeps on: `sleeping` counts its threads that may be in a futex wait on
// `count`.
struct alignas(kLine) EventCount {
  std::atomic<std::uint32_t> count;  // number of wake-ups
  std::atomic<std::uint32_t> sleeping;
  std::atomic<std::uint32_t> left;  // 1: the rank closed its world in order
};

// Offsets of the lanes of a group with n ranks, relative to their start.
struct LaneLayout {
  explicit constexpr LaneLayout(int n)
      : ranks(static_cast<std::size_t>(n)),
        rings(0),
        heads(rings + 2 * ranks * ranks * sizeof(Ring)),
        multicast_rings(heads + 2 * ranks * ranks * sizeof(Head)),
        multicast_heads(multicast_rings + ranks * sizeof(Ring)),
        bytes(multicast_heads + ranks * ranks * sizeof(Head)) {}
  std::size_t ranks;
  std::size_t rings;            // [use][from][to]; use 0: collectives, 1: send and recv
  std::size_t heads;            // [use][from][to]
  std::size_t multicast_rings;  // [from]
  std::size_t multicast_heads;  // [from][to]
  std::size_t bytes;
};

// Offsets of the event counts of n ranks.
struct EventCountLayout {
  explicit constexpr EventCountLayout(int n)
      : sleepers(0),
        event_counts(kLine),
        bytes(event_counts + static_cast<std::size_t>(n) * sizeof(EventCount)) {}
  std::size_t sleepers;      // the number of ranks that may sleep: one word that every sender reads
  std::size_t event_counts;  // [rank]
  std::size_t bytes;
};

}  // namespace unisono::shm
