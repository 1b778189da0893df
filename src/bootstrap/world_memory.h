// The memory that the ranks on one host share while a world lives, laid out as in host_memory.h.
//
// All ranks here are local numbers. After construction any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "bootstrap/host_memory.h"
#include "bootstrap/local_world.h"
#include "transport/shm/segment.h"

namespace unisono::comm {

// The mappings that the ranks of one process share, until the last of these ranks ends its world.
class ProcessMemory {
 public:
  ProcessMemory(int fd, std::size_t bytes) : world_(fd, bytes) {}
  std::byte* world() const noexcept { return world_.data(); }

  // Keeps a mapping because other ranks may still be reading it after the world has failed.
  void keep(std::unique_ptr<shm::Mapping> mapping) noexcept;
  // Offers a segment of `rank` to `takers` other ranks of this process.
  void give(int rank, std::uint64_t number, std::shared_ptr<shm::Mapping> segment, int takers);
  // Returns nullptr if no such segment has been given.
  std::shared_ptr<shm::Mapping> take(int rank, std::uint64_t number);

 private:
  struct Given {
    std::shared_ptr<shm::Mapping> segment;
    int takers = 0;  // that have not taken it
  };
  shm::Mapping world_;
  std::mutex changing_;  // guards the members below
  std::vector<std::unique_ptr<shm::Mapping>> kept_;
  std::map<std::pair<int, std::uint64_t>, Given> given_;
};

class WorldMemory {
 public:
  // Collective over the ranks on the host. Throws resource.
  explicit WorldMemory(LocalWorld& ranks);

  // Marks the memory as a world's memory, for observers outside the process.
  void introduce(int rank, int ranks, std::string_view job) noexcept;

  std::byte* data() const noexcept { return process_->world(); }  // laid out as WorldLayout
  ProcessMemory& process() const noexcept { return *process_; }
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
  std::shared_ptr<ProcessMemory> process_;  // shared by all ranks of a process
};

}  // namespace unisono::comm
