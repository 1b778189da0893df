// What each rank waits for, in whichever group: so that ranks are found that wait for each other in
// different groups, none of which shows it alone. All ranks here are ranks of the world.
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

// "waits for rank 1 in barrier #3 of a group of 2, rank 0 its first".
std::string describe(const WorldWaiting& waiting);

// Any thread may call.
class WorldWaits {
 public:
  // All outlive it. `remote`: nullptr where there is one host.
  WorldWaits(const Hosts& hosts, LocalHost& host, RemoteRecords* remote)
      : hosts_(hosts), host_(host), remote_(remote) {}

  // What this rank waits for; where threads wait in several groups, the latest.
  void note(const WorldWaiting& waiting) noexcept;
  void end(std::uint64_t group) noexcept;
  // nullopt: it is not known to wait. A rank of another host: as that host has told, since_ns being
  // when.
  std::optional<WorldWaiting> of(int rank) const noexcept;

  using Circle = std::vector<std::pair<int, WorldWaiting>>;
  // Ranks that wait for each other in several groups, `rank` the first; empty: there are none. What
  // a rank of another host told before `since_ns` may be true no more, and is not looked at; nor is
  // a wait here that has just begun.
  Circle circle(int rank, std::int64_t since_ns) const;
  // The rank of another host that has not told since then, and that the walk from `rank` to whom it
  // waits for, and so on, comes to; -1: none.
  int unheard(int rank, std::int64_t since_ns) const;
  std::vector<int> all_ranks() const;

 private:
  bool holds(int rank, const WorldWaiting& waiting, std::int64_t since_ns) const noexcept;
  // From `rank` on, to where nothing is known, or back to it.
  Circle walk(int rank, std::int64_t since_ns) const;

  const Hosts& hosts_;
  LocalHost& host_;
  RemoteRecords* remote_;
};

}  // namespace unisono::comm
