// The work of `unisono run --record` around a job: gives each rank memory for its recording, and
// writes one file of all recordings when the job is over, however it ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "cli/console.h"
#include "run/collect.h"
#include "run/launcher.h"

namespace unisono::cli {

inline constexpr std::int64_t kMostRecordedEvents = std::int64_t{1} << 24;

class JobRecorder {
 public:
  // `path`: a file, or a folder that exists or ends in /. `job`: the name of the job. Throws
  // UsageError if nothing can be written there.
  JobRecorder(std::string path, const std::string& job);

  // Gives each rank a place for its recording, which disappears when this process ends: memory for
  // ranks on this host, folders of shells (RemoteFolders) for other hosts.
  void prepare(LaunchOptions& options, const Console& console);
  // Writes the recording after all ranks have ended, and prints its path on stderr.
  void write(const JobResult& result, const LaunchOptions& options, const Console& console);

 private:
  std::string path_;
  std::vector<UniqueFd> memory_;  // by rank
  std::optional<RemoteFolders> folders_;
};

}  // namespace unisono::cli
