// The flight recorder of a group, in shared memory: the latest operations of each rank. An
// operation costs one cache line of stores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/host_memory.h"
#include "unisono/types.hpp"

namespace unisono::comm {

struct alignas(8) OperationRecord {
  std::uint64_t sequence = 0;
  std::uint64_t signature = 0;
  std::uint64_t count = 0;
  int root = 0;
  Collective collective = Collective::barrier;
  Dtype dtype = Dtype::u8;
  ReduceOp op = ReduceOp::sum;
  char algorithm[24] = {};
};

// Cuts a long name in the middle, because its end contains the encoding of moves.
void set_algorithm(OperationRecord& record, std::string_view name) noexcept;

// Returns "all_reduce f32 sum, count 10 (ring)".
std::string describe(const OperationRecord& record);
// Like describe(), without the algorithm.
std::string describe_call(const OperationRecord& record);
// Returns "operation #3: rank 0 calls ...; rank 1 calls ..." and advice, for two calls with one
// number.
std::string describe_disagreement(const std::string& first_name, const OperationRecord& first,
                                  const std::string& second_name, const OperationRecord& second);

// The advice for ranks whose calls with one number disagree.
enum class Advice : std::uint8_t {
  same_calls,
  same_algorithm,
  same_max_error,
  same_counts,  // the counts per rank of a v-form
  same_factor,  // for premul_sum
  same_group
};
Advice advice_on(std::span<const OperationRecord> calls);
std::string_view to_string(Advice advice);

// The constant part of a plan's records, packed once.
struct PackedRecord {
  std::uint64_t words[kFlightWords - 2] = {};
};
PackedRecord pack(const OperationRecord& record) noexcept;

inline void write_record(FlightRecorder& recorder, std::uint64_t sequence, std::uint64_t signature,
                         const PackedRecord& record) noexcept {
  FlightEntry& entry = recorder.entries[sequence % kFlightEntries];
  entry.sequence.store(0, std::memory_order_relaxed);
  // A release store, so that it does not come before the store of sequence 0.
  entry.words[0].store(signature, std::memory_order_release);
  for (int i = 1; i <= kFlightWords - 2; ++i) {
    entry.words[i].store(record.words[i - 1], std::memory_order_release);
  }
  entry.sequence.store(sequence, std::memory_order_release);
}
// Returns the record of one operation, if it has not been overwritten.
std::optional<OperationRecord> read_record(const FlightRecorder& recorder,
                                           std::uint64_t sequence) noexcept;
// Returns the record of the operation with this signature, if it has not been overwritten.
std::optional<OperationRecord> find_record(const FlightRecorder& recorder,
                                           std::uint64_t signature) noexcept;
// Returns the clock of Waiting::since_ns, which all processes on the host share.
std::int64_t flight_clock_ns() noexcept;

// Returns "all_reduce", ..., "send" or "recv".
std::string_view name_of_kind(int kind) noexcept;

// The places in a group's memory where a rank publishes the cost of its calls.
struct PublishedCosts {
  CallCounts* calls = nullptr;  // by kind
  // By group rank: the time (ns) that this rank has waited for it; nullptr if it is on another
  // host.
  std::vector<std::atomic<std::uint64_t>*> waited_for = {};
  std::atomic<std::int32_t>* most_for = nullptr;  // as in WaitLine
};

// The reason for a rank's wait.
struct WaitTarget {
  enum class What : std::uint32_t { collective, send, recv };
  What what = What::collective;
  int peer = -1;           // world rank; -1: no particular rank
  std::int64_t place = 0;  // the step, from 1; or the tag
  std::int64_t since_ns = 0;
};
// The wait of another rank that must end, or make progress, before this rank's wait can.
struct Behind {
  std::int64_t name_ns = 0;      // WorldWaiting::name_ns; 0: unknown
  bool in_another_call = false;  // the other rank waits in another call

  static Behind of(std::uint64_t code) noexcept {
    return {.name_ns = static_cast<std::int64_t>(code >> 1U), .in_another_call = (code & 1U) != 0};
  }
  std::uint64_t code() const noexcept {
    return static_cast<std::uint64_t>(name_ns) << 1U | (in_another_call ? 1U : 0U);
  }
};
// A wait in any group (diagnose/world_waits.h).
struct WorldWaiting {
  std::uint64_t group = 0;
  int group_size = 0;
  int group_first = 0;         // world rank of its rank 0
  std::uint64_t sequence = 0;  // 0: not in a collective
  Collective collective = Collective::barrier;
  WaitTarget waiting = {};
  // One caller waits, and nothing else of this rank is pending: it makes no other call before this
  // one ends.
  bool alone = false;
  // Only a message, or free space, from this peer lets the call advance.
  bool for_one = false;
  std::int64_t name_ns = 0;  // names one wait without progress, by its host's clock
  Behind behind = {};
};
// Packs the kind of a wait into one word: WaitTarget::What, collective, alone and for_one.
std::uint32_t code_of(const WorldWaiting& waiting) noexcept;
void set_code(WorldWaiting& waiting, std::uint32_t code) noexcept;
// Sets `since_ns` when the rank begins to wait for this peer at this place.
void write_wait(FlightRecorder& recorder, const WaitTarget& waiting) noexcept;
inline void end_wait(FlightRecorder& recorder) noexcept {
  recorder.wait.since_ns.store(0, std::memory_order_relaxed);
}
std::optional<WaitTarget> read_wait(const FlightRecorder& recorder) noexcept;
// Identifies a group.
struct GroupName {
  std::uint64_t id = 0;
  std::uint64_t world = 0;  // world_mark() of the group's job
  int size = 0;             // number of ranks on all hosts
  int first = 0;            // world rank of the group's rank 0
};
// `members`: world ranks on this host.
void introduce_group(std::byte* segment, std::span<const int> members,
                     const GroupName& name) noexcept;
// Identifies a world, so that its groups are not confused with those of another world of the same
// processes.
std::uint64_t world_mark(std::string_view job) noexcept;

// Returns the number of a rank's latest operation; 0 if there is none.
inline std::uint64_t newest_sequence(const FlightRecorder& recorder) noexcept {
  std::uint64_t newest = 0;
  for (const FlightEntry& entry : recorder.entries) {
    newest = std::max(newest, entry.sequence.load(std::memory_order_acquire));
  }
  return newest;
}
// Returns the latest record of a rank; its sequence is 0 if there is none.
OperationRecord newest_record(const FlightRecorder& recorder) noexcept;

}  // namespace unisono::comm
