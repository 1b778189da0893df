// The records of all ranks on one clock, the one of rank 0: operations, passes and messages with
// the names and numbers that all ranks share.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "record/segments.h"

namespace unisono::cli {

struct Timeline {
  struct Operation {
    int rank = 0;
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
  struct Message {
    int from = 0, to = 0;
    unsigned step = 0;
    std::uint64_t bytes = 0;
    std::string label = {};
    double begin_ns = 0, end_ns = 0;
  };

  int ranks = 0;
  std::vector<Operation> operations = {};
  std::vector<Pass> passes = {};
  std::vector<Transfer> transfers = {};
  std::vector<Message> messages = {};
  // By rank; NaN: its clock could not be aligned; infinite: it has no record.
  std::vector<double> uncertainty_ns = {};
  std::vector<std::uint64_t> dropped = {};  // by rank: events
};

// The records outlive the result. `most_rows` of events: of more the newest.
Timeline make_timeline(const std::vector<RankRecord>& records, int ranks, std::size_t most_rows);

}  // namespace unisono::cli
