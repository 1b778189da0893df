// The shared memory of new groups: on each host, one member makes the memory and the other members
// map it. All ranks in this file are world ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "transport/shm/segment.h"

namespace unisono::comm {

class AbortWord;
class Hosts;
class LocalHost;
class Rosters;
class Watch;

class GroupSegments {
 public:
  // All arguments must outlive this object.
  GroupSegments(const Hosts& hosts, LocalHost& host, Watch& watch, AbortWord& abort,
                Rosters& rosters)
      : hosts_(hosts), host_(host), watch_(watch), abort_(abort), rosters_(rosters) {}

  // Makes a segment for `members`. Sets `number`, with which the other members take the segment.
  std::shared_ptr<shm::Mapping> offer(std::span<const int> members, std::size_t bytes,
                                      std::uint64_t& number);
  std::shared_ptr<shm::Mapping> take(int offerer, std::uint64_t number);
  // Shares a segment without an exchange: the first of `members` makes the segment of group `id`,
  // and the others wait for it, at most for the given time (0: no limit). All members must be in
  // different processes. Throws connection.
  std::shared_ptr<shm::Mapping> meet(std::span<const int> members, std::size_t bytes,
                                     std::uint64_t id, int timeout_ms);

 private:
  bool sent(const std::function<bool()>& send);
  void wait_for(int peer, int timeout_ms, const std::function<bool()>& met);

  const Hosts& hosts_;
  LocalHost& host_;
  Watch& watch_;
  AbortWord& abort_;
  Rosters& rosters_;
  std::uint64_t next_ = 1;
};

}  // namespace unisono::comm
