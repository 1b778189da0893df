// Finds the jobs that run on this host, from their shared memory and /proc.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/text.h"
#include "diagnose/observe.h"

namespace unisono::cli {

struct ProcessState {
  int pid = 0;
  char state = '?';  // as in /proc/PID/stat: R runs, S sleeps, D waits for a device, T stopped
  double cpu_s = 0;
};

// If ranks are separated on this machine as on several hosts, the job has one segment per such
// host.
struct Job {
  std::uint64_t segment = 0;  // the inode of its memory, or of one of its segments
  comm::ObservedWorld world = {};
  std::vector<comm::ObservedGroup> groups = {};             // the others
  std::vector<std::optional<ProcessState>> processes = {};  // by rank; none: there is no process
};

// Returns all jobs with a process that this user may read.
std::vector<Job> find_jobs();
// The message if there is no job.
inline constexpr const char* kNoJobs = "no job of unisono runs here";
inline constexpr const char* kSeenJobs =
    "only jobs of this host whose processes this user may read are seen";
// Processes without memory of a job, and the time at which each was last examined. Examining all
// processes of a host takes much longer than reading a job.
struct Unrelated {
  static constexpr std::chrono::seconds kLookAgain{10};
  std::map<int, std::chrono::steady_clock::time_point> processes = {};
};
// Returns the jobs that the word selects: the number of a process, or the name of a job; empty:
// all. `unrelated`: a process in it is skipped for kLookAgain; nullptr: none is skipped.
std::vector<Job> matching_jobs(std::string_view word, Unrelated* unrelated = nullptr);
// Like matching_jobs(). Throws UsageError if the word selects no job.
std::vector<Job> find_jobs(std::string_view word);

// Returns false if the rank is on another host, so that nothing is known about it.
bool is_here(const Job& job, std::size_t rank);

// Returns the process number, in this namespace, of a rank on this host.
int pid_of(const Job& job, std::size_t rank);

// "4 ranks, 2 of them here, 3 groups".
std::string size_text(const Job& job);
// Returns why a job ended, in lines of `width` columns after "ended: ".
std::string ended_text(std::string_view why, int width);

// Returns the jobs, after joining jobs that have the same name and size but different ranks.
std::vector<Job> join_parts(std::vector<Job> parts);

// "runs", "sleeps", "is stopped", ...
Text state_text(const std::optional<ProcessState>& process);

}  // namespace unisono::cli
