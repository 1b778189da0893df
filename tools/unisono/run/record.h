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
  // `path`: a file, or a folder that exists or ends in /. `job`: its name. Throws UsageError where
  // nothing can be written there.
  JobRecorder(std::string path, const std::string& job);

  // Gives each rank a place to record in. Nothing of it is left when this process ends: for ranks
  // of this host it is memory, for others there are shells (RemoteFolders).
  void prepare(LaunchOptions& options, const Console& console);
  // When all have ended. Says on stderr where the recording is.
  void write(const JobResult& result, const LaunchOptions& options, const Console& console);

 private:
  std::string path_;
  std::vector<UniqueFd> memory_;  // by rank
  std::optional<RemoteFolders> folders_;
};

}  // namespace unisono::cli
