// The shared memory of new groups: on each host one member makes it and the other members map it.
// All ranks here are world ranks.
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

  struct Offer {
    std::uint32_t number = 0;
    std::uint32_t reserved = 0;
    const std::shared_ptr<shm::Mapping>* mapping = nullptr;  // in the offering process
  };
  // The offer must live until all members have taken it, because ranks in the same process share
  // its mapping.
  Offer offer(std::span<const int> members, std::size_t bytes,
              std::shared_ptr<shm::Mapping>& mapping);
  std::shared_ptr<shm::Mapping> take(int offerer, const Offer& offer);
  // Shares a segment without an exchange: the first of `members` makes the segment of the group
  // `id`, and the others wait for it for the given time (0: no limit). No member may be a thread of
  // this process. Throws connection.
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
