// Observes a job from outside, from a copy of the shared memory of any of its processes, even of
// one that hangs or has stopped. Takes no lock, and does not affect the job.
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

// All calls of one kind on one group.
struct ObservedCalls {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;      // per call the larger of input and output
  std::uint64_t moving_ns = 0;  // in blocking calls, without waiting
  std::uint64_t waited_ns = 0;
  std::int64_t since_ns = 0;  // the wait in progress; 0: there is none
};

struct ObservedRank {
  int world_rank = 0;
  OperationRecord newest = {};  // sequence 0: none yet
  std::optional<WaitTarget> waiting = {};
  std::vector<ObservedCalls> calls = {};  // by kind, as CallCounts
  std::uint64_t waited_ns = 0;            // over all kinds
  // World ranks in this segment, and how long this rank has waited for them.
  std::vector<std::pair<int, std::uint64_t>> waited_for_ns = {};
  int waited_most_for = -1;  // world rank; -1: none yet
  std::string label = {};    // of the calls on this group only
};

// A segment has only the ranks on its host.
struct ObservedGroup {
  std::uint64_t id = 0;                  // 0: the group of all ranks
  std::uint64_t world = 0;               // world_mark() of its job
  int size = 0;                          // with ranks on other hosts
  int first = 0;                         // world rank of its rank 0: two groups may have one id
  std::vector<ObservedRank> ranks = {};  // the ranks in this segment
};

struct ObservedWorld {
  std::string job = {};
  std::vector<int> pids = {};            // by rank, each in its own view; 0: on another host
  std::vector<bool> left = {};           // by rank: it has left properly
  std::vector<std::string> labels = {};  // by rank: its current label
  std::string abort = {};                // why the world has ended; empty: it has not
  ObservedGroup group = {};              // of all ranks
};

// Copies from a segment. Returns false if not all of it could be read.
using ReadSegment = std::function<bool(std::size_t offset, std::span<std::byte> to)>;

// Returns nullopt if the segment has another version, or is just being initialised.
std::optional<ObservedWorld> observe_world(const ReadSegment& read);
std::optional<ObservedGroup> observe_group(const ReadSegment& read);

}  // namespace unisono::comm
