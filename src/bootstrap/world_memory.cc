#include "bootstrap/world_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <span>
#include <utility>

namespace unisono::comm {
namespace {

// Ranks of one process use one mapping. The first rank makes the mapping, and all of them share its
// ownership.
struct MemoryNote {
  const std::shared_ptr<ProcessMemory>* process = nullptr;
};

std::shared_ptr<ProcessMemory> share_memory(LocalWorld& ranks, std::size_t bytes) {
  const int me = ranks.rank();
  UniqueFd created;
  if (me == 0) {
    created = shm::create_memory("unisono-world", bytes);
  }
  const UniqueFd memory(ranks.broadcast_fd(created.get()));
  int first = 0;
  while (!ranks.peer(first).same_process) {
    ++first;
  }
  std::shared_ptr<ProcessMemory> process;
  MemoryNote note;
  if (first == me) {
    process = std::make_shared<ProcessMemory>(memory.get(), bytes);
    note.process = &process;
  }
  const auto notes = ranks.all_gather(std::as_bytes(std::span(&note, 1)));
  if (first != me) {
    std::memcpy(&note, notes[static_cast<std::size_t>(first)].data(), sizeof(note));
    process = *note.process;
  }
  ranks.all_gather({});  // the first rank's pointer is valid until all have copied it
  return process;
}

}  // namespace

void ProcessMemory::keep(std::unique_ptr<shm::Mapping> mapping) noexcept {
  const std::lock_guard lock(changing_);
  try {
    kept_.push_back(std::move(mapping));
  } catch (const std::bad_alloc&) {
    static_cast<void>(mapping.release());  // NOLINT(bugprone-unused-return-value): it stays mapped
  }
}

void ProcessMemory::give(int rank, std::uint64_t number, std::shared_ptr<shm::Mapping> segment,
                         int takers) {
  const std::lock_guard lock(changing_);
  given_[{rank, number}] = {.segment = std::move(segment), .takers = takers};
}

std::shared_ptr<shm::Mapping> ProcessMemory::take(int rank, std::uint64_t number) {
  const std::lock_guard lock(changing_);
  const auto given = given_.find({rank, number});
  if (given == given_.end()) {
    return nullptr;
  }
  std::shared_ptr<shm::Mapping> segment = given->second.segment;
  if (--given->second.takers == 0) {
    given_.erase(given);
  }
  return segment;
}

WorldMemory::WorldMemory(LocalWorld& ranks)
    : layout_(ranks.size()), process_(share_memory(ranks, layout_.bytes)) {}

void WorldMemory::introduce(int rank, int ranks, std::string_view job) noexcept {
  auto& pid = reinterpret_cast<std::atomic<std::int32_t>*>(data() + layout_.pids)[rank];
  pid.store(getpid(), std::memory_order_relaxed);
  if (rank == 0) {
    auto& header = *reinterpret_cast<WorldHeader*>(data() + layout_.header);
    header.ranks.store(ranks, std::memory_order_relaxed);
    job.copy(header.job, sizeof(header.job) - 1);
    header.magic.store(kWorldMagic, std::memory_order_release);
  }
}

}  // namespace unisono::comm
