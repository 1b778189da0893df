#include "comm/board.h"

#include <cstring>

namespace unisono::comm {
namespace {

static_assert(sizeof(OperationRecord::algorithm) ==
              sizeof(PackedRecord) - 2 * sizeof(std::uint64_t));

std::optional<OperationRecord> read_entry(const shm::BoardEntry& entry) noexcept {
  OperationRecord record;
  record.sequence = entry.sequence.load(std::memory_order_acquire);
  std::uint64_t words[shm::kBoardWords];
  for (int i = 0; i < shm::kBoardWords; ++i) {
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

bool has_root(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
    case Collective::scatter:
    case Collective::gather:
    case Collective::reduce:
    case Collective::scatter_v:
    case Collective::gather_v:
      return true;
    default:
      return false;
  }
}

bool has_op(Collective collective) {
  return collective == Collective::reduce || collective == Collective::all_reduce ||
         collective == Collective::reduce_scatter || collective == Collective::reduce_scatter_v;
}

}  // namespace

std::string describe(const OperationRecord& record) {
  std::string text(to_string(record.collective));
  if (record.collective == Collective::barrier) {
    return text;
  }
  text += " " + std::string(to_string(record.dtype));
  if (has_op(record.collective)) {
    text += " " + std::string(to_string(record.op));
  }
  text += ", count " + std::to_string(record.count);
  if (has_root(record.collective)) {
    text += ", root " + std::to_string(record.root);
  }
  return text + " (" + record.algorithm + ")";
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

std::optional<OperationRecord> read_record(const shm::Board& board,
                                           std::uint64_t sequence) noexcept {
  auto record = read_entry(board.entries[sequence % shm::kBoardEntries]);
  return record.has_value() && record->sequence == sequence ? record : std::nullopt;
}

std::optional<OperationRecord> find_record(const shm::Board& board,
                                           std::uint64_t signature) noexcept {
  for (const shm::BoardEntry& entry : board.entries) {
    const auto record = read_entry(entry);
    if (record.has_value() && record->signature == signature) {
      return record;
    }
  }
  return std::nullopt;
}

OperationRecord newest_record(const shm::Board& board) noexcept {
  OperationRecord newest;
  for (const shm::BoardEntry& entry : board.entries) {
    const auto record = read_entry(entry);
    if (record.has_value() && record->sequence > newest.sequence) {
      newest = *record;
    }
  }
  return newest;
}

}  // namespace unisono::comm
