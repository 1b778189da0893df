#include "bootstrap/world_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <span>

namespace unisono::comm {
namespace {

// Ranks of one process use one mapping: the first one makes it and the others share its ownership.
struct MappingNote {
  const std::shared_ptr<shm::Mapping>* mapping = nullptr;
};

std::shared_ptr<shm::Mapping> share_mapping(LocalWorld& ranks, std::size_t bytes) {
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
  std::shared_ptr<shm::Mapping> mapping;
  MappingNote note;
  if (first == me) {
    mapping = std::make_shared<shm::Mapping>(memory.get(), bytes);
    note.mapping = &mapping;
  }
  const auto notes = ranks.all_gather(std::as_bytes(std::span(&note, 1)));
  if (first != me) {
    std::memcpy(&note, notes[static_cast<std::size_t>(first)].data(), sizeof(note));
    mapping = *note.mapping;
  }
  ranks.all_gather({});  // the first rank's pointer is valid until all have copied it
  return mapping;
}

}  // namespace

WorldMemory::WorldMemory(LocalWorld& ranks)
    : layout_(ranks.size()), mapping_(share_mapping(ranks, layout_.bytes)) {}

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
