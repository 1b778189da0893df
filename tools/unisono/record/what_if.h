// A recorded job simulated again with a change: what a straggler, a link or communication costs.
//
// Each rank computes between its calls as long as it did. A call is anchored at the latest begin or
// end of an earlier call of its rank, so calls that overlap stay overlapped. An operation begins
// when its last rank has come, and each rank leaves it as long after that as it did; a rank that
// left before the last one came, such as the root of a broadcast, waited for nobody and takes as
// long as it did. Without a change this returns the recorded times, up to the error of the ranks'
// clocks.
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
  double compute = 1;             // by how much computing is faster
  std::vector<int> faster = {};   // ranks that compute faster; empty: all
  double link = 1;  // by how much moving data is faster; infinite: communication takes no time
  int group = -1;  // in JobCalls::groups: only its operations take less, by `link`; -1: all of them
};

// A group whose operations take longer than the same ones of other groups.
struct SlowLink {
  int group = -1;    // -1: none
  double ratio = 1;  // of its time to that of the others
};

class WhatIf {
 public:
  // Uses what all ranks of an operation have ended, and counts in `account` what is left out and
  // assumed. Throws UsageError if too little is left to simulate. `job` must outlive it.
  WhatIf(const JobCalls& job, Account& account);

  double recorded_us() const { return recorded_us_; }
  // Throws UsageError if a rank of `without` cannot be compared with others.
  double run(const Change& change) const;
  // Returns true if each of the ranks shares an operation with a rank that is not one of them, so
  // that run() can give it the computing of others.
  bool can_replace(const std::vector<int>& ranks) const;

  // The ranks whose absence saves most of the time; empty: no rank stands out.
  std::vector<int> stragglers() const;
  SlowLink slow_link() const;
  // Returns true if the latency of some kind of operation could be told from the time per byte.
  bool has_latencies() const { return has_latencies_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Operation {
    std::vector<std::size_t> calls = {};  // in calls_
    double begin_us = 0;                  // when its last rank came
    double moving_us = 0;                 // from then until its last rank left
    double latency_us = 0;                // part of moving_us that no faster link shortens
  };
  struct Call {
    const JobCall* recorded = nullptr;
    std::size_t operation = 0;
    double start_us = 0;
    std::size_t anchor = kNone;  // in calls_; kNone: the beginning of the recording
    bool is_after_end = false;   // of the anchor; else after its begin
    double compute_us = 0;       // from the anchor to its start
    bool waits = true;           // for the other ranks of its operation
    double rest_us = 0;          // from the operation's begin (waits), or its own, to its end
  };
  // Calls of other ranks that compute the same before them.
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
