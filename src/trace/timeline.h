// The records of all ranks on one clock, the one of rank 0: operations, passes and messages with
// the names and numbers that all ranks share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trace/rank_record.h"

namespace unisono::trace {

// The times at which the processes of a job ended, as seen by the launcher.
struct ProcessEnds {
  std::uint64_t clock = 0;            // as in RankRecord
  std::vector<std::int64_t> ns = {};  // by rank, of CLOCK_MONOTONIC; may be empty
};

inline constexpr double kUnknownNs = std::numeric_limits<double>::quiet_NaN();

struct Timeline {
  struct Operation {
    int rank = 0;
    int world = 0;  // how many there were before
    std::string group = {};
    const RecordedOperation* what = nullptr;
    double begin_ns = 0, end_ns = -1;  // since the beginning of the recording
    double busy_ns = 0;
  };
  struct Pass {
    std::size_t operation = 0;  // in `operations`
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
  // Why a world ended, as it was said first where that is recorded.
  struct Abort {
    int world = 0;
    std::string name = {};  // of the world: "world", "world (2)"
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
  // By rank; NaN: its clock could not be aligned; infinite: it has no record.
  std::vector<double> uncertainty_ns = {};
  std::vector<std::uint64_t> dropped = {};   // by rank: events that the rank did not keep
  std::vector<std::uint64_t> left_out = {};  // by rank: events beyond `most_rows`
  // By rank: when its process ended; where that is not known, when the last thing happened.
  std::vector<double> until_ns = {};
  bool knows_ends = false;  // of the processes

  // Until now, if it has not ended.
  double end_or_now(const Operation& operation) const {
    const double until = until_ns[static_cast<std::size_t>(operation.rank)];
    return operation.end_ns >= 0 ? operation.end_ns : std::max(operation.begin_ns, until);
  }
};

// The records outlive the result. `most_rows` of events: of more the newest.
Timeline make_timeline(const std::vector<RankRecord>& records, int ranks, std::size_t most_rows,
                       const ProcessEnds& ends);

}  // namespace unisono::trace
