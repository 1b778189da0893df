// Observes a job from outside, from a copy of the shared memory of any of its processes, even of a
// process that hangs or was stopped. Takes no lock, and does not affect the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/flight_recorder.h"

namespace unisono::comm {

// The calls of one kind on one group.
struct ObservedCalls {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;      // per call, the larger of input and output
  std::uint64_t moving_ns = 0;  // in blocking calls, without the time spent waiting
  std::uint64_t waited_ns = 0;
  std::int64_t since_ns = 0;  // start of the current wait; 0: not waiting
};

struct ObservedRank {
  int world_rank = 0;
  OperationRecord newest = {};  // sequence 0: none yet
  std::optional<WaitTarget> waiting = {};
  std::vector<ObservedCalls> calls = {};  // by kind, as CallCounts
  std::uint64_t waited_ns = 0;            // over all kinds
  // World ranks in this segment, with the time that this rank has waited for each.
  std::vector<std::pair<int, std::uint64_t>> waited_for_ns = {};
  int waited_most_for = -1;  // world rank; -1: none yet
  std::string label = {};    // label of the calls on this group only
};

// A group, with only those ranks that are on the segment's host.
struct ObservedGroup {
  std::uint64_t id = 0;                  // 0: the group of all ranks
  std::uint64_t world = 0;               // world_mark() of the group's job
  int size = 0;                          // including ranks on other hosts
  int first = 0;                         // world rank of its rank 0, because two groups may have
                                         // one id
  std::vector<ObservedRank> ranks = {};  // the ranks in this segment
};

struct ObservedWorld {
  std::string job = {};
  std::vector<int> pids = {};            // by rank, as each process sees itself; 0: on another host
  std::vector<bool> left = {};           // by rank: left properly
  std::vector<std::string> labels = {};  // by rank: its current label
  std::string abort = {};                // why the world has ended; empty: not ended
  ObservedGroup group = {};              // of all ranks
};

// Copies bytes from a segment. Returns false if it could not read all of them.
using ReadSegment = std::function<bool(std::size_t offset, std::span<std::byte> to)>;

// Returns nullopt if the segment has another version, or is still being initialised.
std::optional<ObservedWorld> observe_world(const ReadSegment& read);
std::optional<ObservedGroup> observe_group(const ReadSegment& read);

}  // namespace unisono::comm
