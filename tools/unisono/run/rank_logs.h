// A file for the output of each stream of each rank. If a log cannot be written, the job continues;
// the log continues when there is room again.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "run/output.h"

namespace unisono::cli {

class RankLogs {
 public:
  // Opens rank-<i>.out and rank-<i>.err in `directory`, which it creates; empty: keeps no logs.
  // Throws UsageError if they cannot be written.
  void open(const std::string& directory, int ranks);
  void write(int rank, Stream stream, std::string_view bytes);
  // Warns if some output of ranks is not in the files, because there was no room or they were
  // removed. Returns true in this case.
  bool tell_lost() const;

 private:
  struct Log {
    int rank = 0;
    UniqueFd file;
  };

  std::string directory_;
  std::vector<Log> logs_;  // by rank, each with its stdout first
  // The streams with output that is not in the files.
  std::set<int> lost_of_;
  std::uint64_t lost_bytes_ = 0;
  int error_ = 0;
};

}  // namespace unisono::cli
