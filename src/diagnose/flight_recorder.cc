#include "diagnose/flight_recorder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "base/collectives.h"
#include "base/hash.h"

namespace unisono::comm {
namespace {

static_assert(sizeof(OperationRecord::algorithm) ==
              sizeof(PackedRecord) - 2 * sizeof(std::uint64_t));

std::optional<OperationRecord> read_entry(const FlightEntry& entry) noexcept {
  OperationRecord record;
  record.sequence = entry.sequence.load(std::memory_order_acquire);
  std::uint64_t words[kFlightWords];
  for (int i = 0; i < kFlightWords; ++i) {
    words[i] = entry.words[i].load(std::memory_order_acquire);
  }
  if (record.sequence == 0 || entry.sequence.load(std::memory_order_relaxed) != record.sequence) {
    return std::nullopt;
  }
  record.signature = words[0];
  record.count = words[1];
  record.root = static_cast<std::int32_t>(words[2]);
  record.collective = static_cast<Collective>((words[2] >> 32) & 0xffU);
  record.dtype = static_cast<Dtype>((words[2] >> 40) & 0xffU);
  record.op = static_cast<ReduceOp>((words[2] >> 48) & 0xffU);
  std::memcpy(record.algorithm, &words[3], sizeof(record.algorithm));
  record.algorithm[sizeof(record.algorithm) - 1] = '\0';
  const bool sane = static_cast<int>(record.collective) < kCollectiveCount &&
                    static_cast<int>(record.dtype) < kDtypeCount &&
                    static_cast<int>(record.op) < kReduceOpCount;
  return sane ? std::optional(record) : std::nullopt;
}

// Returns the "+i8" of "two_shot+i8": the encoding of moves between hosts; empty if there is none.
std::string_view code_name(std::string_view algorithm) {
  const std::size_t plus = algorithm.rfind('+');
  return plus == std::string_view::npos ? std::string_view() : algorithm.substr(plus);
}

}  // namespace

std::string_view to_string(Advice advice) {
  switch (advice) {
    case Advice::same_algorithm:
      return "all ranks must use the same algorithm: compare their UNISONO_ALGORITHM, "
             "UNISONO_PROFILE and the algorithms that their calls name";
    case Advice::same_max_error:
      return "all ranks must use the same max_error and the same algorithm: compare their "
             "UNISONO_MAX_ERROR, UNISONO_ALGORITHM and the arguments of their calls";
    case Advice::same_counts:
      return "all ranks must pass the same list of counts: the lists differ, although their sums "
             "are equal";
    case Advice::same_factor:
      return "all ranks must pass the same factor to premul_sum";
    case Advice::same_group:
      return "group() fused several all_reduces into this one: each of them must have the same "
             "count on all ranks";
    default:
      return "all ranks must make the same calls in the same order";
  }
}

Advice advice_on(std::span<const OperationRecord> calls) {
  if (calls.size() < 2) {
    return Advice::same_calls;  // the other arguments are unknown
  }
  bool same_algorithm = true;
  bool same_code = true;
  for (const OperationRecord& call : calls) {
    if (describe_call(call) != describe_call(calls.front())) {
      return Advice::same_calls;
    }
    same_algorithm &= std::string_view(call.algorithm) == calls.front().algorithm;
    same_code &= code_name(call.algorithm) == code_name(calls.front().algorithm);
  }
  if (!same_algorithm) {
    return same_code ? Advice::same_algorithm : Advice::same_max_error;
  }
  const OperationRecord& call = calls.front();
  return is_v_form(call.collective)                                    ? Advice::same_counts
         : reduces(call.collective) && call.op == ReduceOp::premul_sum ? Advice::same_factor
                                                                       : Advice::same_group;
}

void set_algorithm(OperationRecord& record, std::string_view name) noexcept {
  constexpr std::size_t kRoom = sizeof(record.algorithm) - 1;
  const std::string_view code = name.size() > kRoom ? code_name(name) : std::string_view();
  const std::size_t before = kRoom - std::min(code.size(), kRoom);
  const std::size_t copied = name.copy(record.algorithm, before);
  const std::size_t end = copied + code.copy(record.algorithm + copied, kRoom - copied);
  record.algorithm[end] = '\0';
}

std::string describe_call(const OperationRecord& record) {
  std::string text(to_string(record.collective));
  if (record.collective == Collective::barrier) {
    return text;
  }
  text += " " + std::string(to_string(record.dtype));
  if (reduces(record.collective)) {
    text += " " + std::string(to_string(record.op));
  }
  text += ", count " + std::to_string(record.count);
  if (is_rooted(record.collective)) {
    text += ", root " + std::to_string(record.root);
  }
  return text;
}

std::string describe(const OperationRecord& record) {
  const std::string call = describe_call(record);
  return record.collective == Collective::barrier ? call : call + " (" + record.algorithm + ")";
}

std::string describe_disagreement(const std::string& first_name, const OperationRecord& first,
                                  const std::string& second_name, const OperationRecord& second) {
  const std::string one = describe(first);
  const std::string other = describe(second);
  return "operation #" + std::to_string(first.sequence) + ": " + first_name +
         (one == other ? " and " + second_name + " call " + one + ", but not alike"
                       : " calls " + one + "; " + second_name + " calls " + other) +
         "\n" + std::string(to_string(advice_on(std::array{first, second})));
}

PackedRecord pack(const OperationRecord& record) noexcept {
  PackedRecord packed;
  packed.words[0] = record.count;
  packed.words[1] = static_cast<std::uint64_t>(static_cast<std::uint32_t>(record.root)) |
                    static_cast<std::uint64_t>(record.collective) << 32 |
                    static_cast<std::uint64_t>(record.dtype) << 40 |
                    static_cast<std::uint64_t>(record.op) << 48;
  std::memcpy(&packed.words[2], record.algorithm, sizeof(record.algorithm));
  return packed;
}

std::optional<OperationRecord> read_record(const FlightRecorder& recorder,
                                           std::uint64_t sequence) noexcept {
  auto record = read_entry(recorder.entries[sequence % kFlightEntries]);
  return record.has_value() && record->sequence == sequence ? record : std::nullopt;
}

std::optional<OperationRecord> find_record(const FlightRecorder& recorder,
                                           std::uint64_t signature) noexcept {
  for (const FlightEntry& entry : recorder.entries) {
    const auto record = read_entry(entry);
    if (record.has_value() && record->signature == signature) {
      return record;
    }
  }
  return std::nullopt;
}

std::int64_t flight_clock_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::uint32_t code_of(const WorldWaiting& waiting) noexcept {
  return (waiting.for_one ? 1U << 17U : 0U) | (waiting.alone ? 1U << 16U : 0U) |
         static_cast<std::uint32_t>(waiting.waiting.what) << 8U |
         static_cast<std::uint32_t>(waiting.collective);
}

// Validates the code, because it may come from another host.
void set_code(WorldWaiting& waiting, std::uint32_t code) noexcept {
  waiting.alone = (code >> 16U & 1U) != 0;
  waiting.for_one = (code >> 17U & 1U) != 0;
  waiting.waiting.what = static_cast<WaitTarget::What>(
      std::min(code >> 8U & 0xFFU, static_cast<std::uint32_t>(WaitTarget::What::recv)));
  const std::uint32_t collective = code & 0xFFU;
  waiting.collective = collective < static_cast<std::uint32_t>(kCollectiveCount)
                           ? static_cast<Collective>(collective)
                           : Collective::barrier;
}

void write_wait(FlightRecorder& recorder, const WaitTarget& waiting) noexcept {
  WaitLine& line = recorder.wait;
  const auto what = static_cast<std::uint32_t>(waiting.what);
  const bool same = line.what.load(std::memory_order_relaxed) == what &&
                    line.peer.load(std::memory_order_relaxed) == waiting.peer &&
                    line.place.load(std::memory_order_relaxed) == waiting.place;
  if (!same || line.since_ns.load(std::memory_order_relaxed) == 0) {
    // 0 while the line is being written: read_wait() reads the time before and after the rest.
    line.since_ns.store(0, std::memory_order_relaxed);
    line.what.store(what, std::memory_order_release);
    line.peer.store(waiting.peer, std::memory_order_release);
    line.place.store(waiting.place, std::memory_order_release);
    line.since_ns.store(flight_clock_ns(), std::memory_order_release);
  }
}

std::optional<WaitTarget> read_wait(const FlightRecorder& recorder) noexcept {
  const WaitLine& line = recorder.wait;
  const std::int64_t since = line.since_ns.load(std::memory_order_acquire);
  if (since == 0) {
    return std::nullopt;
  }
  const WaitTarget target{.what = static_cast<WaitTarget::What>(
                              std::min(line.what.load(std::memory_order_acquire),
                                       static_cast<std::uint32_t>(WaitTarget::What::recv))),
                          .peer = line.peer.load(std::memory_order_acquire),
                          .place = line.place.load(std::memory_order_acquire),
                          .since_ns = since};
  return line.since_ns.load(std::memory_order_relaxed) == since ? std::optional(target)
                                                                : std::nullopt;
}

std::string_view name_of_kind(int kind) noexcept {
  switch (kind) {
    case kSendKind:
      return "send";
    case kRecvKind:
      return "recv";
    default:
      return to_string(static_cast<Collective>(kind));
  }
}

std::uint64_t world_mark(std::string_view job) noexcept {
  return Hash().add(job.substr(0, sizeof(WorldHeader::job) - 1)).value();
}

void introduce_group(std::byte* segment, std::span<const int> members,
                     const GroupName& name) noexcept {
  const GroupLayout layout(static_cast<int>(members.size()));
  auto* ranks = reinterpret_cast<std::atomic<std::int32_t>*>(segment + layout.members);
  for (std::size_t i = 0; i < members.size(); ++i) {
    ranks[i].store(members[i], std::memory_order_relaxed);
  }
  auto& header = *reinterpret_cast<GroupHeader*>(segment + layout.header);
  header.id.store(name.id, std::memory_order_relaxed);
  header.world.store(name.world, std::memory_order_relaxed);
  header.ranks.store(static_cast<std::int32_t>(members.size()), std::memory_order_relaxed);
  header.size.store(name.size, std::memory_order_relaxed);
  header.first.store(name.first, std::memory_order_relaxed);
  header.magic.store(kGroupMagic, std::memory_order_release);
}

OperationRecord newest_record(const FlightRecorder& recorder) noexcept {
  OperationRecord newest;
  for (const FlightEntry& entry : recorder.entries) {
    const auto record = read_entry(entry);
    if (record.has_value() && record->sequence > newest.sequence) {
      newest = *record;
    }
  }
  return newest;
}

}  // namespace unisono::comm
