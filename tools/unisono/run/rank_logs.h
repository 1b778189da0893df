// A file for each stream of each rank: what it printed. The job goes on without its logs, and the
// logs where there is room again.
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
  // rank-<i>.out and rank-<i>.err in `directory`, which is made; empty: none are kept. Throws
  // UsageError where they cannot be written.
  void open(const std::string& directory, int ranks);
  void write(int rank, Stream stream, std::string_view bytes);
  // Warns if some of what ranks printed is not in the files: there was no room, or they were
  // removed. Returns whether that is so.
  bool tell_lost() const;

 private:
  struct Log {
    int rank = 0;
    UniqueFd file;
  };

  std::string directory_;
  std::vector<Log> logs_;  // by rank, each with its stdout first
  // The output that did not go into the files.
  std::set<int> lost_of_;
  std::uint64_t lost_bytes_ = 0;
  int error_ = 0;
};

}  // namespace unisono::cli
