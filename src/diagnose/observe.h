// What a job is doing, seen from outside: from a copy of the shared memory of any of its processes,
// also one that hangs or has stopped. Takes no lock, and the job does not notice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnose/flight_recorder.h"

namespace unisono::comm {

struct ObservedRank {
  int world_rank = 0;
  OperationRecord newest = {};  // sequence 0: none yet
  std::optional<WaitTarget> waiting = {};
  std::uint64_t waited_ns = 0;  // in all
  int waited_most_for = -1;     // a rank of the world; -1: nobody yet
  std::string label = {};       // of the calls on this group alone
};

// A segment has only the ranks of its host.
struct ObservedGroup {
  std::uint64_t id = 0;                  // 0: the group of all ranks
  std::uint64_t world = 0;               // world_mark() of its job
  int size = 0;                          // with the ranks of other hosts
  int first = 0;                         // its rank 0, in the world: two groups may have one id
  std::vector<ObservedRank> ranks = {};  // those that are seen here
};

struct ObservedWorld {
  std::string job = {};
  std::vector<int> pids = {};            // by rank, as each knows itself; 0: it is on another host
  std::vector<bool> left = {};           // by rank: it has left in good order
  std::vector<std::string> labels = {};  // by rank: what it says that its calls are for
  std::string abort = {};                // why the world has ended; empty: it has not
  ObservedGroup group = {};              // of all ranks
};

// Copies from a segment. False: not all of it could be read.
using ReadSegment = std::function<bool(std::size_t offset, std::span<std::byte> to)>;

// nullopt: the segment is not of this version, or it begins just now.
std::optional<ObservedWorld> observe_world(const ReadSegment& read);
std::optional<ObservedGroup> observe_group(const ReadSegment& read);

}  // namespace unisono::comm
