// Names of ranks for error texts. Ranks on one host connect under local numbers, but error texts
// use the job's numbers.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace unisono::comm {

class RankNames {
 public:
  RankNames() = default;  // one host: the numbers are the same
  explicit RankNames(std::vector<int> in_job) : in_job_(std::move(in_job)) {}

  // Returns the rank's number in the job.
  int number(int rank) const {
    const bool known = rank >= 0 && static_cast<std::size_t>(rank) < in_job_.size();
    return known ? in_job_[static_cast<std::size_t>(rank)] : rank;
  }
  // "rank 3"
  std::string text(int rank) const { return "rank " + std::to_string(number(rank)); }
  // "rank 3 of 4", "rank 3 (one of 2 on this host)"
  std::string among(int rank, int size) const {
    const std::string all = std::to_string(size);
    return text(rank) + (in_job_.empty() ? " of " + all : " (one of " + all + " on this host)");
  }

 private:
  std::vector<int> in_job_;
};

}  // namespace unisono::comm
