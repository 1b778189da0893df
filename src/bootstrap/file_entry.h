// A file as meeting point: it gives the job a random name, and each rank a number.
#pragma once

#include <string>

#include "bootstrap/wire.h"

namespace unisono::comm {

// This rank's entry in the file. The last rank to enter removes the file. If ranks named in the
// file have died, the next rank begins the file again.
class FileEntry {
 public:
  // With rank -1, takes the lowest free number. Errors: config (the file is of another kind, or the
  // rank is taken), connection (the file stays locked), resource (the file cannot be opened).
  FileEntry(const std::string& path, int rank, int size, const Deadline& deadline);

  int rank() const { return rank_; }
  const std::string& job() const { return job_; }
  // Removes the file, if it still exists. Called after a failure, when the job cannot start.
  void withdraw() const;

 private:
  bool enter(int rank, int size, const Deadline& deadline);

  std::string path_;
  std::string job_;
  int rank_ = -1;
};

}  // namespace unisono::comm
