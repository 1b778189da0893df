// The operations of a group's ranks, as far as this rank knows them: from the flight recorders of
// ranks on this host, and from the reports of ranks on other hosts. Ranks are group ranks, unless
// called world ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/flight_recorder.h"
#include "diagnose/remote_records.h"

namespace unisono::comm {

class Hosts;

class GroupRecords {
 public:
  // `members`: world ranks. `segment`: memory shared by the members on this host. `remote`: nullptr
  // if there is only one host; must outlive this object.
  GroupRecords(const Hosts& hosts, std::vector<int> members, int rank, std::uint64_t id,
               std::byte* segment, RemoteRecords* remote);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(members_.size()); }
  std::uint64_t id() const noexcept { return id_; }
  const std::vector<int>& members() const noexcept { return members_; }
  int world_rank(int rank) const noexcept { return members_[static_cast<std::size_t>(rank)]; }
  // Returns -1 if the rank is not in the group.
  int group_rank(int world_rank) const noexcept;
  std::string name(int rank) const;  // such as "rank 5 (1 of its group)"

  FlightRecorder& mine() noexcept { return *here_[static_cast<std::size_t>(rank_)]; }
  const PublishedCosts& costs() const noexcept { return costs_; }
  // Returns nullptr if the rank is on another host.
  const FlightRecorder* here(int rank) const noexcept {
    return here_[static_cast<std::size_t>(rank)];
  }
  // Returns nullptr if the rank is on another host and has not reported.
  const FlightRecorder* find(int rank) const noexcept;
  bool has_remote() const noexcept { return remote_ != nullptr; }
  // Returns the ranks that have not entered this rank's latest collective, or have not reported
  // that they have.
  std::vector<int> late() const;

  // Reports this rank's latest operations, up to number `newest`, to the members on other hosts.
  // `ask`: asks the waiting members to report theirs.
  void tell_others(std::uint64_t newest, bool ask) noexcept;
  // Keeps the latest operations, up to number `newest`, for this rank's farewell
  // (RemoteRecords::keep_last()).
  void keep_last(std::uint64_t newest) noexcept;
  // Like RemoteRecords::take_late_disagreement(). REQUIRES: has_remote().
  RemoteRecords::Late take_late_disagreement() noexcept {
    return remote_->take_late_disagreement();
  }
  // Receives the reports of other ranks. Returns true if a rank asks for reports. REQUIRES:
  // has_remote().
  bool hear_others() noexcept;

 private:
  std::vector<int> members_;
  int rank_;
  std::uint64_t id_;
  std::vector<FlightRecorder*> here_;  // by rank; nullptr: on another host
  PublishedCosts costs_;               // of this rank
  RemoteRecords* remote_;
};

}  // namespace unisono::comm
