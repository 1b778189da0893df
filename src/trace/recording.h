// The memory in which a rank records its operations: a header, names, groups, and a ring of events
// of 32 bytes each. This memory is shared memory or a file, and has no pointers, so that a later
// process can read it, even if the rank was killed at any moment.
//
// Writers take the ring in blocks, one block for each busy group, and fill a block with plain
// stores: recording an event takes no lock, and waits for no cache line of a peer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "unisono/types.hpp"

namespace unisono::trace::recording {

inline constexpr std::uint64_t kMagic = 0x36306365526f6e55;  // "UnoRec06"
inline constexpr int kNames = 512;
inline constexpr int kGroups = 512;
inline constexpr int kMembers = 32768;
inline constexpr std::uint64_t kBlockEvents = 64;
inline constexpr std::size_t kPage = 4096;
inline constexpr int kEveryPeer = 0xffff;
inline constexpr int kSpanBits = 48;  // a day at 3 GHz
inline constexpr std::uint64_t kUnended = (std::uint64_t{1} << kSpanBits) - 1;
inline constexpr std::uint32_t kWhole = (1U << (64 - kSpanBits)) - 1;

// `none`: the rest of the block is unused.
enum class EventKind : std::uint8_t {
  none,
  operation,
  send,
  receive,
  reduce,
  copy,
  transfer,
  label
};

// The meaning of the fields depends on the kind:
// - operation: `order` is its number in its group, `peer` its group, `detail` its name, `step` its
//   root in the group plus 1, or 0 without a root. An operation has terms() instead of busy().
// - transfer (a user's send or recv): `order` is the tag, `detail` the group. A send is entirely
//   busy, a recv not at all.
// - label: applies to the following operations and transfers of a group, until the next label or
//   the end of the block. `peer` is the group, `detail` the name; 0xffff means no label.
// - all other kinds are one pass of a program, or one source of a pass: `order` is the place of the
//   pass's operation in the ring, `detail` the number of the message in its lane.
struct Event {
  std::uint64_t begin = 0;        // in ticks
  std::uint64_t span = kUnended;  // made by pack_span()
  std::uint32_t order = 0;
  std::uint16_t peer = 0;
  std::uint16_t detail = 0;
  std::uint64_t packed = 0;  // made by pack()

  // In ticks; longer durations count as kUnended - 1.
  std::uint64_t duration() const { return span & kUnended; }
  bool ended() const { return duration() != kUnended; }
  // The share of the duration in which bytes moved that no other event counts.
  double busy() const { return static_cast<double>(span >> kSpanBits) / kWhole; }
  // For an operation: the result of pack_terms().
  unsigned terms() const { return static_cast<unsigned>(span >> kSpanBits); }
  static std::uint64_t pack_span(std::uint64_t duration, std::uint64_t busy) {
    if (duration >= kUnended) {
      duration = kUnended - 1;
    }
    const std::uint64_t part =
        busy >= duration ? kWhole
                         : static_cast<std::uint64_t>(static_cast<float>(busy) /
                                                      static_cast<float>(duration) * kWhole);
    return duration | part << kSpanBits;
  }

  EventKind kind() const { return static_cast<EventKind>(packed & 7U); }
  bool to_all() const { return (packed & 8U) != 0; }  // over a multicast lane
  std::uint32_t step() const { return static_cast<std::uint32_t>(packed >> 4) & 0xfffffU; }
  std::uint64_t bytes() const { return packed >> 24; }
  static std::uint64_t pack(EventKind kind, bool to_all, std::uint32_t step, std::uint64_t bytes) {
    return static_cast<std::uint64_t>(kind) | (to_all ? 8U : 0U) |
           (std::uint64_t{step} & 0xfffffU) << 4 | bytes << 24;
  }
};
static_assert(sizeof(Event) == 32);

// The operands of an operation in 16 bits: the element type, the reduce operation, and whether its
// program runs in place. 0: unknown.
static_assert(kDtypeCount + 1 <= 32 && kReduceOpCount <= 32, "5 bits each");
constexpr std::uint16_t pack_terms(int dtype, int op, bool in_place) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(dtype + 1) |
                                    static_cast<unsigned>(op) << 5 | (in_place ? 1U << 10 : 0U));
}
constexpr int dtype_of(unsigned terms) {
  return static_cast<int>(terms & 31U) - 1;  // negative: unknown
}
constexpr int op_of(unsigned terms) {
  return static_cast<int>(terms >> 5 & 31U);
}
constexpr bool is_in_place(unsigned terms) {
  return (terms >> 10 & 1U) != 0;
}

// A label has no collective.
struct Name {
  char collective[24] = {};
  char algorithm[104] = {};
};
inline constexpr int kNoLabel = 0xffff;

struct GroupRecord {
  std::uint64_t id = 0;
  std::int32_t size = 0;
  std::int32_t members = -1;  // start in the list of members; -1: the whole world
  // Label of the rank's next calls on this group, as a name; kNoLabel: use the rank's label.
  std::atomic<std::int32_t> label = kNoLabel;
};

// One moment in both clocks. `error_ns`: the error of `ns`.
struct ClockPair {
  std::atomic<std::uint64_t> ticks = 0;
  std::atomic<std::int64_t> ns = 0;  // in CLOCK_MONOTONIC
  std::atomic<std::int64_t> error_ns = 0;
};

// The reason why the world ended, unless it ended in good order.
struct Abort {
  std::atomic<std::int32_t> state = 0;  // 1: being written, 2: complete
  std::int32_t code = 0;                // ErrorCode
  std::int32_t rank = -1;               // the culprit's rank of the world
  std::int32_t reporter = -1;           // the first rank on the host to report it
  std::uint64_t ticks = 0;              // when this rank received it
  char text[1024] = {};                 // Error::what() without the code
};

struct RecordingHeader {
  std::atomic<std::uint64_t> magic = 0;  // set last
  std::uint64_t bytes = 0;               // size including the ring; the next recording of a file
                                         // follows
  std::uint64_t events = 0;              // capacity of the ring; whole blocks
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t pid = 0;
  std::int32_t left = 0;    // 1: the rank left in good order
  std::uint64_t clock = 0;  // equal on ranks that share a CLOCK_MONOTONIC
  char job[128] = {};
  char host[64] = {};
  ClockPair first;
  ClockPair latest;
  std::atomic<std::uint64_t> taken = 0;  // number of blocks taken since the start
  std::atomic<std::int32_t> names = 0;
  std::atomic<std::int32_t> groups = 0;
  std::atomic<std::int32_t> members = 0;
  std::atomic<std::int32_t> unnamed = 0;       // groups without room in the list
  std::atomic<std::int32_t> label = kNoLabel;  // label of the rank's next calls, as a name
  // Position, in the list of members, of each rank's number before any rank was lost; -1:
  // unchanged.
  std::int32_t first_ranks = -1;
  Name name[kNames];
  std::int32_t world = 0;  // number of the job's earlier worlds (shrink(), grow())
  GroupRecord group[kGroups];
  std::int32_t member[kMembers];
  Abort abort;
};

// Returns the label of the rank's next calls on a group, as a name.
inline int label_of(const RecordingHeader& header, std::size_t group) noexcept {
  const int own = header.group[group].label.load(std::memory_order_relaxed);
  return own != kNoLabel ? own : header.label.load(std::memory_order_relaxed);
}

inline constexpr std::size_t kRing = (sizeof(RecordingHeader) + kPage - 1) / kPage * kPage;

// Returns CLOCK_MONOTONIC in nanoseconds.
std::uint64_t monotonic_ns() noexcept;
// Reads both clocks. `counter`: as for ticks().
void note_clock(ClockPair& pair, bool counter) noexcept;

// Returns the processor's counter, which takes a few nanoseconds, if the system uses it as its
// clock; else CLOCK_MONOTONIC.
inline std::uint64_t ticks(bool counter) noexcept {
#if defined(__x86_64__)
  if (counter) {
    return __builtin_ia32_rdtsc();
  }
#elif defined(__aarch64__)
  if (counter) {
    std::uint64_t value = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
  }
#else
  static_cast<void>(counter);
#endif
  return monotonic_ns();
}

}  // namespace unisono::trace::recording
