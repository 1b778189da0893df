// The jobs that measure this host.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/console.h"
#include "tune/measurements.h"

namespace unisono::cli {

// Starts the jobs for all rank counts in turn, several times. A disturbance of one job, or an
// unlucky placement of its ranks, then affects only one of several measurements, and the fastest
// time is used (network_model/repeats.h). Jobs with more ranks get more of the time.
class Campaign {
 public:
  // Throws UsageError.
  Campaign(const Arguments& arguments, const Console& console);

  // Returns an exit code if a job has failed.
  std::optional<int> run();
  const Measurements& measured() const { return measured_; }
  double seconds() const;
  int most_ranks() const { return counts_.back(); }

 private:
  std::optional<int> run_jobs(int ranks, double seconds);
  // Runs a job that measures the given numbers of threads, or everything else if there are none.
  std::optional<int> run_job(int ranks, double seconds, const std::vector<int>& threads);

  const Console& console_;
  std::string max_bytes_;
  std::string sizes_;
  std::vector<int> threads_;  // the numbers of --threads
  bool is_long_ = false;      // helper threads take part in the largest calls
  double seconds_;
  std::vector<int> counts_;
  double left_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Measurements measured_;
};

}  // namespace unisono::cli
