#include "comm/group_segments.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/hosts.h"
#include "bootstrap/local_host.h"
#include "diagnose/rosters.h"
#include "membership/abort_word.h"
#include "membership/watch.h"

namespace unisono::comm {
namespace {

using Kind = LocalHost::SegmentName::Kind;

}  // namespace

std::shared_ptr<shm::Mapping> GroupSegments::offer(std::span<const int> members, std::size_t bytes,
                                                   std::uint64_t& number) {
  const UniqueFd memory = shm::create_memory("unisono-group", bytes);
  auto mapping = std::make_shared<shm::Mapping>(memory.get(), bytes);
  const LocalHost::SegmentName name{.kind = Kind::group, .number = next_++};
  number = name.number;
  int takers = -1;  // without this rank
  for (const int member : members) {
    takers += watch_.same_process_as(member) ? 1 : 0;
    if (hosts_.is_here(member) && !watch_.same_process_as(member) && !sent([&] {
          return host_.send_segment(hosts_.local(member), name, *mapping, memory.get());
        })) {
      throw Error(ErrorCode::resource, "rank " + std::to_string(member) +
                                           " does not read its announcements"
                                           "\nsplit fewer groups at once");
    }
  }
  if (takers > 0) {
    host_.memory().process().give(host_.rank(), number, mapping, takers);
  }
  return mapping;
}

std::shared_ptr<shm::Mapping> GroupSegments::take(int offerer, std::uint64_t number) {
  const int from = hosts_.local(offerer);
  auto mapping = watch_.same_process_as(offerer)
                     ? host_.memory().process().take(from, number)
                     : host_.take_segment(from, {.kind = Kind::group, .number = number});
  if (mapping == nullptr) {
    throw Error(ErrorCode::internal,
                "the segment of a new group did not arrive from rank " + std::to_string(offerer));
  }
  return mapping;
}

std::shared_ptr<shm::Mapping> GroupSegments::meet(std::span<const int> members, std::size_t bytes,
                                                  std::uint64_t id, int timeout_ms) {
  const std::vector<int> here = hosts_.local_of(members);
  const int first = here.front();
  const LocalHost::SegmentName name{.kind = Kind::subgroup, .number = id};
  std::shared_ptr<shm::Mapping> mapping;
  if (first != host_.rank()) {
    wait_for(first, timeout_ms, [&] {
      mapping = host_.take_segment(first, name);
      return mapping != nullptr;
    });
    return mapping;
  }
  const UniqueFd memory = shm::create_memory("unisono-group", bytes);
  mapping = std::make_shared<shm::Mapping>(memory.get(), bytes);
  for (const int member : std::span(here).subspan(1)) {
    wait_for(member, timeout_ms, [&] {
      return sent([&] { return host_.send_segment(member, name, *mapping, memory.get()); });
    });
  }
  return mapping;
}

// Runs send(). If another rank received an error, it may have left before this rank looks; then
// this rank reports that error.
bool GroupSegments::sent(const std::function<bool()>& send) {
  try {
    return send();
  } catch (const Error&) {
    watch_.look();
    if (abort_.is_set()) {
      abort_.throw_reason({});
    }
    throw;
  }
}

// `peer` is the other rank's number on this host.
void GroupSegments::wait_for(int peer, int timeout_ms, const std::function<bool()>& met) {
  const Deadline deadline = Deadline::of_timeout(timeout_ms);
  while (!met()) {
    watch_.look();
    rosters_.look();
    if (abort_.is_set()) {
      abort_.throw_reason({});
    }
    if (deadline.passed()) {
      const int rank = hosts_.here()[static_cast<std::size_t>(host_.rank())];
      const int missing = hosts_.here()[static_cast<std::size_t>(peer)];
      throw Error(ErrorCode::connection,
                  "rank " + std::to_string(missing) + " does not create the group that rank " +
                      std::to_string(rank) + " waits for\nall members must call subgroup()",
                  {.rank = rank, .peer = missing});
    }
    usleep(50);
  }
}

}  // namespace unisono::comm
