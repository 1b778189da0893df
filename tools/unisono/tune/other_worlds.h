// Additional worlds of a job's ranks, with other wait policies or numbers of threads.
#pragma once

#include <string>

#include "unisono/communicator.hpp"

namespace unisono::cli {

class OtherWorlds {
 public:
  // Collective.
  explicit OtherWorlds(Communicator& comm);
  // Collective. Fills in the ranks and the job, and disables profiles.
  Communicator connect(ConnectOptions options);
  // Returns the number of CPUs that any of the ranks may use.
  int cpus() const { return cpus_; }

 private:
  int rank_;
  int size_;
  int cpus_;
  std::string job_;  // the same on all ranks, and unique to this job
  int made_ = 0;
};

}  // namespace unisono::cli
