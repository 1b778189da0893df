// What the ranks of one group are doing, as this rank can know it: the flight recorders of the
// ranks of this host, and what those of other hosts have told. Ranks are those of the group, unless
// it says "of the world".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnose/flight_recorder.h"

namespace unisono::comm {

class Hosts;
class RemoteRecords;

class GroupRecords {
 public:
  // `members`: ranks of the world. `segment`: of those of them that are on this host. `remote`:
  // nullptr where there is one host; outlives it.
  GroupRecords(const Hosts& hosts, std::vector<int> members, int rank, std::uint64_t id,
               std::byte* segment, RemoteRecords* remote);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(members_.size()); }
  std::uint64_t id() const noexcept { return id_; }
  const std::vector<int>& members() const noexcept { return members_; }
  int world_rank(int rank) const noexcept { return members_[static_cast<std::size_t>(rank)]; }
  // -1: it is not in the group.
  int group_rank(int world_rank) const noexcept;
  std::string name(int rank) const;  // "rank 5 (1 of its group)"

  FlightRecorder& mine() noexcept { return *here_[static_cast<std::size_t>(rank_)]; }
  // nullptr: it is on another host.
  const FlightRecorder* here(int rank) const noexcept {
    return here_[static_cast<std::size_t>(rank)];
  }
  // nullptr: it is on another host, and has told nothing.
  const FlightRecorder* find(int rank) const noexcept;
  bool has_remote() const noexcept { return remote_ != nullptr; }
  // Those that have not entered the latest collective of this one, or have not told so.
  std::vector<int> late() const;

  // Tells the ranks of other hosts which operations this one has entered last, up to number
  // `newest`, and for whom it waits in that one. `ask`: those that wait are to tell too.
  void tell_others(std::uint64_t newest, const WaitTarget& waiting, bool ask) noexcept {
    tell(members_, newest, waiting, ask);
  }
  // The same to ranks of the world, which need not be of the group.
  void tell(std::span<const int> ranks, std::uint64_t newest, const WaitTarget& waiting,
            bool ask) noexcept;
  // Keeps the latest operations, up to number `newest`, for the farewell of this rank
  // (RemoteRecords::keep_last()).
  void keep_last(std::uint64_t newest) noexcept;
  // The ranks that have asked, in whichever group. REQUIRES: has_remote().
  std::vector<int> take_askers();
  // Takes in what they tell. True: somebody asks. REQUIRES: has_remote().
  bool hear_others() noexcept;

 private:
  std::vector<int> members_;
  int rank_;
  std::uint64_t id_;
  std::vector<FlightRecorder*> here_;  // by rank; nullptr: on another host
  RemoteRecords* remote_;
};

}  // namespace unisono::comm
