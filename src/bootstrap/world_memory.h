// The memory that the ranks of one host share while a world lives, from its layout in
// host_memory.h: why the world has ended, who goes on after a failure, who lives, who sleeps, the
// first group, the pools.
//
// All ranks here are numbers on this host. Any thread may call, once it is made.
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
  // All ranks of the host make it at once. Throws resource.
  explicit WorldMemory(LocalWorld& ranks);

  // To those who look from outside: it is the memory of a world from now on.
  void introduce(int rank, int ranks, std::string_view job) noexcept;

  std::byte* data() const noexcept { return mapping_->data(); }  // as WorldLayout
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
  std::shared_ptr<shm::Mapping> mapping_;  // one for all ranks of a process
};

}  // namespace unisono::comm
