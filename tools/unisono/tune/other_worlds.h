// Worlds of a job's ranks beside its own, in which they wait or move otherwise.
#pragma once

#include <string>

#include "unisono/communicator.hpp"

namespace unisono::cli {

class OtherWorlds {
 public:
  // Collective.
  explicit OtherWorlds(Communicator& comm);
  // Collective. The ranks, the job, and that no profile is used, are filled in.
  Communicator connect(ConnectOptions options);
  // Returns the number of CPUs that any of the ranks may use.
  int cpus() const { return cpus_; }

 private:
  int rank_;
  int size_;
  int cpus_;
  std::string job_;  // the same on all ranks, and of this job alone
  int made_ = 0;
};

}  // namespace unisono::cli
