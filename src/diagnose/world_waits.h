// The waits of each rank, in any group, to find ranks that wait for each other in different groups,
// which no single group shows. All ranks here are world ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/flight_recorder.h"

namespace unisono::comm {

class Hosts;
class LocalHost;
class RemoteRecords;

// Returns "waits for rank 1 in barrier #3 of a group of 2, rank 0 its first".
std::string describe(const WorldWaiting& waiting);

// Any thread may call.
class WorldWaits {
 public:
  // All arguments must outlive it. `remote`: nullptr if there is one host.
  WorldWaits(const Hosts& hosts, LocalHost& host, RemoteRecords* remote)
      : hosts_(hosts), host_(host), remote_(remote) {}

  // Records this rank's wait; if threads wait in several groups, the latest one.
  void note(const WorldWaiting& waiting) noexcept;
  void end(std::uint64_t group) noexcept;
  // Returns nullopt if it is not known to wait. For a rank on another host: its last report, with
  // the time of the report as since_ns.
  std::optional<WorldWaiting> of(int rank) const noexcept;

  using Circle = std::vector<std::pair<int, WorldWaiting>>;
  // Returns ranks that wait for each other in several groups, `rank` first; empty: there are none.
  // Reports of other hosts from before `since_ns` may be outdated and are ignored, as is a local
  // wait that has just begun.
  Circle circle(int rank, std::int64_t since_ns) const;
  // Returns the rank on another host without a report since then that the chain of waiting ranks
  // from `rank` reaches; -1: none.
  int unheard(int rank, std::int64_t since_ns) const;
  std::vector<int> all_ranks() const;

 private:
  bool holds(int rank, const WorldWaiting& waiting, std::int64_t since_ns) const noexcept;
  // Follows the chain from `rank` to where nothing is known, or back to `rank`.
  Circle walk(int rank, std::int64_t since_ns) const;

  const Hosts& hosts_;
  LocalHost& host_;
  RemoteRecords* remote_;
};

}  // namespace unisono::comm
