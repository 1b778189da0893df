// A file as meeting point: it gives a job a random name, and numbers to its ranks.
#pragma once

#include <string>

#include "bootstrap/wire.h"

namespace unisono::comm {

// This rank's entry in the file. The last rank to enter removes the file. A file whose ranks have
// died is started again.
class FileEntry {
 public:
  // rank -1: the lowest free number. Errors: config (not such a file, rank taken), connection (the
  // file stays locked), resource (cannot be opened).
  FileEntry(const std::string& path, int rank, int size, const Deadline& deadline);

  int rank() const { return rank_; }
  const std::string& job() const { return job_; }
  // Removes the file, if it still exists, after a failure: the job cannot start.
  void withdraw() const;

 private:
  bool enter(int rank, int size, const Deadline& deadline);

  std::string path_;
  std::string job_;
  int rank_ = -1;
};

}  // namespace unisono::comm
