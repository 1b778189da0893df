// The records of all ranks on the clock of rank 0: operations, passes and messages, with names and
// numbers that all ranks share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trace/rank_record.h"

namespace unisono::trace {

// The times at which the job's processes ended, as seen by the launcher.
struct ProcessEnds {
  std::uint64_t clock = 0;            // as in RankRecord
  std::vector<std::int64_t> ns = {};  // by rank, in CLOCK_MONOTONIC; may be empty
};

inline constexpr double kUnknownNs = std::numeric_limits<double>::quiet_NaN();

struct Timeline {
  struct Operation {
    int rank = 0;
    int world = 0;  // number of earlier worlds
    std::string group = {};
    const RecordedOperation* what = nullptr;
    double begin_ns = 0, end_ns = -1;  // since the beginning of the recording
    double busy_ns = 0;
  };
  struct Pass {
    std::size_t operation = 0;  // index in `operations`
    const RecordedPass* what = nullptr;
    double begin_ns = 0, end_ns = 0;
  };
  struct Transfer {
    int rank = 0;
    std::string group = {};
    const RecordedTransfer* what = nullptr;
    double begin_ns = 0, end_ns = -1;
  };
  struct Group {
    std::string name = {};
    std::vector<int> members = {};  // ranks of the world, in the group's order
  };
  // The reason why a world ended, from the rank that reported it first, if recorded.
  struct Abort {
    int world = 0;
    std::string name = {};  // name of the world: "world", "world (2)"
    RecordedAbort what = {};
    double at_ns = kUnknownNs;
  };
  struct Message {
    int from = 0, to = 0;
    unsigned step = 0;
    std::uint64_t bytes = 0;
    std::string label = {};
    double begin_ns = 0, end_ns = 0;
  };

  int ranks = 0;
  std::vector<Group> groups = {};
  std::vector<Abort> aborts = {};  // by world
  std::vector<Operation> operations = {};
  std::vector<Pass> passes = {};
  std::vector<Transfer> transfers = {};
  std::vector<Message> messages = {};
  // By rank. NaN: its clock could not be aligned. Infinite: it has no record.
  std::vector<double> uncertainty_ns = {};
  std::vector<std::uint64_t> dropped = {};   // by rank: events that its recording dropped
  std::vector<std::uint64_t> left_out = {};  // by rank: events beyond `most_rows`
  // By rank: when its process ended; if unknown, the time of its last event.
  std::vector<double> until_ns = {};
  bool knows_ends = false;  // whether the ends of the processes are known

  // Returns the operation's end, or the end of the rank's record if it has not ended.
  double end_or_now(const Operation& operation) const {
    const double until = until_ns[static_cast<std::size_t>(operation.rank)];
    return operation.end_ns >= 0 ? operation.end_ns : std::max(operation.begin_ns, until);
  }
};

// The records must outlive the result. `most_rows` limits the events: the latest ones are kept.
Timeline make_timeline(const std::vector<RankRecord>& records, int ranks, std::size_t most_rows,
                       const ProcessEnds& ends);

}  // namespace unisono::trace
