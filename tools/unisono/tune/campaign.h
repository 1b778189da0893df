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

// Starts the jobs, all rank counts in turn, several times: what disturbs one job, or how its ranks
// happen to meet, then counts once, and the quickest time counts (network_model/repeats.h). Larger
// ones get more of the time.
class Campaign {
 public:
  // Throws UsageError.
  Campaign(const Arguments& arguments, const Console& console);

  // An exit code where a job has failed.
  std::optional<int> run();
  const Measurements& measured() const { return measured_; }
  double seconds() const;
  int most_ranks() const { return counts_.back(); }

 private:
  std::optional<int> run_jobs(int ranks, double seconds);
  // One that measures numbers of threads, or, if there are none, all else.
  std::optional<int> run_job(int ranks, double seconds, const std::vector<int>& threads);

  const Console& console_;
  std::string max_bytes_;
  std::string sizes_;
  std::vector<int> threads_;  // that were named
  bool is_long_ = false;      // helper threads take part in the largest calls
  double seconds_;
  std::vector<int> counts_;
  double left_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Measurements measured_;
};

}  // namespace unisono::cli
