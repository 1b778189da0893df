// A group of a world as seen by this rank: its members, their shared memory and lanes, and each
// member's current operation.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/fabric.h"
#include "comm/world.h"
#include "diagnose/group_records.h"
#include "transport/shm/segment.h"

namespace unisono::comm {

class Group {
 public:
  // `members` are world ranks; this rank is members[rank]. `segment` is shared by the members on
  // this host; it is nullptr for the first group, which uses the world's segment.
  Group(std::shared_ptr<World> world, std::shared_ptr<shm::Mapping> segment,
        std::vector<int> members, int rank, std::uint64_t id);

  World& world() const noexcept { return *world_; }
  const std::shared_ptr<World>& shared_world() const noexcept { return world_; }
  GroupRecords& records() noexcept { return records_; }
  int rank() const noexcept { return records_.rank(); }
  int size() const noexcept { return records_.size(); }
  std::uint64_t id() const noexcept { return records_.id(); }
  const std::vector<int>& members() const noexcept { return records_.members(); }
  int world_rank(int rank) const noexcept { return records_.world_rank(rank); }
  std::string name(int rank) const { return records_.name(rank); }
  // Counts a group that is split off from this one. Returns its number, from 1.
  std::uint32_t count_split() noexcept { return ++splits_; }
  int hosts() const;
  int host(int rank) const;
  // Returns the number of ranks below `end` that run on this rank's host.
  int ranks_here_below(int end) const;

  std::unique_ptr<transport::Transport> make_lanes(Fabric::Use use) const;
  // Returns a writer for the events of one use; the writer is off if nothing is recorded.
  trace::TraceWriter make_writer() const;

 private:
  std::shared_ptr<World> world_;
  std::shared_ptr<shm::Mapping> segment_;
  std::byte* memory_;
  GroupRecords records_;
  std::uint32_t splits_ = 0;
};

}  // namespace unisono::comm
