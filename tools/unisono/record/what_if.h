// Simulates a recorded job with a change: the cost of a straggler, a link or communication.
//
// Each rank computes between its calls for as long as in the recording. A call is anchored at the
// latest begin or end of an earlier call of its rank, so overlapping calls stay overlapped. An
// operation begins when its last rank has arrived, and each rank leaves it after the same time as
// in the recording. A rank that left before the last one arrived, such as the root of a broadcast,
// waited for nobody; its duration stays the same. Without a change, the simulation returns the
// recorded times, up to the errors of the ranks' clocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/account.h"
#include "record/job_calls.h"

namespace unisono::cli {

struct Change {
  std::vector<int> without = {};  // ranks that compute no longer than the others at the same calls
  double compute = 1;             // factor by which computing is faster
  std::vector<int> faster = {};   // ranks that compute faster; empty: all
  double link = 1;  // factor by which moving data is faster; infinite: it takes no time
  int group =
      -1;  // in JobCalls::groups: only its operations are faster, by `link`; -1: all operations
};

// A group whose operations take longer than the same operations of other groups.
struct SlowLink {
  int group = -1;    // -1: none
  double ratio = 1;  // its time divided by that of the others
};

class WhatIf {
 public:
  // Uses the operations that all of their ranks have ended, and lists in `account` the operations
  // that were left out and the assumptions. Throws UsageError if too little is left to simulate.
  // `job` must outlive it.
  WhatIf(const JobCalls& job, Account& account);

  double recorded_us() const { return recorded_us_; }
  // Throws UsageError if a rank of `without` cannot be compared with others.
  double run(const Change& change) const;
  // Returns true if each of the ranks shares an operation with a rank that is not one of them, so
  // that run() can use the computing times of others for it.
  bool can_replace(const std::vector<int>& ranks) const;

  // The ranks whose absence saves most of the time; empty: no rank stands out.
  std::vector<int> stragglers() const;
  SlowLink slow_link() const;
  // Returns true if the latency of some kind of operation could be separated from the time per
  // byte.
  bool has_latencies() const { return has_latencies_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Operation {
    std::vector<std::size_t> calls = {};  // in calls_
    double begin_us = 0;                  // when its last rank arrived
    double moving_us = 0;                 // from then until its last rank left
    double latency_us = 0;                // part of moving_us that no faster link shortens
  };
  struct Call {
    const JobCall* recorded = nullptr;
    std::size_t operation = 0;
    double start_us = 0;
    std::size_t anchor = kNone;  // in calls_; kNone: the beginning of the recording
    bool is_after_end = false;   // true: after the end of the anchor; false: after its begin
    double compute_us = 0;       // from the anchor to its start
    bool waits = true;           // for the other ranks of its operation
    double rest_us = 0;          // from the operation's begin (waits), or its own, to its end
  };
  // Calls before which ranks do the same computation.
  using Place = std::tuple<std::size_t, std::size_t, bool>;  // operation, anchor's operation, after

  void add_operations(const std::vector<JobMeeting>& meetings, Account& account);
  void anchor_calls();
  void measure_operations();
  void fit_latencies();
  std::vector<double> computes(const Change& change) const;
  void replace(int rank, const std::vector<int>& without, std::vector<double>& us) const;
  double moves(const Operation& operation, const Change& change, double us) const;
  Place place_of(const Call& call) const;

  const JobCalls& job_;
  std::vector<Operation> operations_ = {};
  std::vector<Call> calls_ = {};
  std::vector<std::vector<std::size_t>> by_rank_ = {};  // in calls_, by start
  std::map<Place, std::vector<std::size_t>> places_ = {};
  double first_us_ = 0;
  double recorded_us_ = 0;
  bool has_latencies_ = false;
};

// Adds the sends and receives of a unisono.trace/1 to its calls. Throws what job_calls_of() does.
void add_transfers(const nlohmann::ordered_json& trace, JobCalls& job);

}  // namespace unisono::cli
