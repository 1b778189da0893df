// The shared memory of new groups: on each host one member makes it, and the others there take it.
// All ranks here are ranks of the world.
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
  // All of these outlive it.
  GroupSegments(const Hosts& hosts, LocalHost& host, Watch& watch, AbortWord& abort,
                Rosters& rosters)
      : hosts_(hosts), host_(host), watch_(watch), abort_(abort), rosters_(rosters) {}

  struct Offer {
    std::uint32_t number = 0;
    std::uint32_t reserved = 0;
    const std::shared_ptr<shm::Mapping>* mapping = nullptr;  // in the offerer's process
  };
  // The offer must stay until all have taken it: ranks of the same process share the mapping.
  Offer offer(std::span<const int> members, std::size_t bytes,
              std::shared_ptr<shm::Mapping>& mapping);
  std::shared_ptr<shm::Mapping> take(int offerer, const Offer& offer);
  // The same without any other exchange: the first of `members` makes the segment of the group
  // that all of them know by `id`, the others wait for it, at most so long (0: for ever). None may
  // be a thread of this process. Throws connection.
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
  std::uint32_t next_ = 1;
};

}  // namespace unisono::comm
