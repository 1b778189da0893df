// The memory that the ranks on one host share while a world lives, laid out as in host_memory.h.
//
// All ranks here are local numbers. After construction any thread may call.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "bootstrap/host_memory.h"
#include "bootstrap/local_world.h"
#include "transport/shm/segment.h"

namespace unisono::comm {

class WorldMemory {
 public:
  // Collective over the ranks on the host. Throws resource.
  explicit WorldMemory(LocalWorld& ranks);

  // Marks the memory as that of a world, for observers outside of the process.
  void introduce(int rank, int ranks, std::string_view job) noexcept;

  std::byte* data() const noexcept { return mapping_->data(); }  // laid out as WorldLayout
  std::byte* first_group() const noexcept { return data() + layout_.group; }
  std::byte* event_counts() const noexcept { return data() + layout_.event_counts; }
  std::byte* pool(int rank) const noexcept {
    return data() + layout_.pools + static_cast<std::size_t>(rank) * shm::kPoolBytes;
  }
  AbortRecord& abort_record() const noexcept { return *reinterpret_cast<AbortRecord*>(data()); }
  LivenessWord& liveness(int rank) const noexcept {
    return reinterpret_cast<LivenessWord*>(data() + layout_.liveness)[rank];
  }
  WorldWait& world_wait(int rank) const noexcept {
    return reinterpret_cast<WorldWait*>(data() + layout_.waits)[rank];
  }
  RankLabel& label(int rank) const noexcept {
    return reinterpret_cast<RankLabel*>(data() + layout_.labels)[rank];
  }
  RosterBoard& rosters(int rank) const noexcept {
    return reinterpret_cast<RosterBoard*>(data() + layout_.rosters)[rank];
  }

 private:
  WorldLayout layout_;
  std::shared_ptr<shm::Mapping> mapping_;  // shared by all ranks of a process
};

}  // namespace unisono::comm
