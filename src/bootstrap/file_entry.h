// A file as the meeting point: it gives a job its random name, and ranks their numbers.
#pragma once

#include <string>

#include "bootstrap/wire.h"

namespace unisono::comm {

// This rank's entry in the file. The last rank to enter removes the file; a file whose ranks have
// died is started anew.
class FileEntry {
 public:
  // rank -1: the lowest that nobody has. Errors: config (not such a file, rank taken), connection
  // (the file stays locked), resource (cannot be opened).
  FileEntry(const std::string& path, int rank, int size, const Deadline& deadline);

  int rank() const { return rank_; }
  const std::string& job() const { return job_; }
  // After a failure: the job will not come about, so its file goes, if it is still there.
  void withdraw() const;

 private:
  bool enter(int rank, int size, const Deadline& deadline);

  std::string path_;
  std::string job_;
  int rank_ = -1;
};

}  // namespace unisono::comm
