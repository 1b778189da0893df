// The log that `unisono run` shares with the ranks on its host: a file that UNISONO_LAUNCHER names.
// With --hosts, each rank has its own file, and the rank's shell writes the end of the process to
// this file. All writers append whole lines:
//
//   job NAME RANKS            first line, by the launcher
//   end RANK HOW              by the launcher: the process of that rank has ended
//   met                       by a rank: all ranks have connected; from now on the world may change
//   missed RANK               by a rank: a meeting waited for that rank, which had ended
//   reason WHY                by the launcher: it is about to end the remaining ranks
//   advice WHAT               by the launcher: what to do about the reason
//   failed RANK CULPRIT WHY   by that rank: its world has ended with an error; CULPRIT is the rank
//                             to blame, -1 if there is none
//   recovered RANK            by that rank: it is in a new world, which continues
//
// RANK is the number that the launcher assigned.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace unisono::comm {

// The reason why a rank's world has ended.
struct JobFailure {
  int culprit = -1;  // the rank to blame; -1: no particular rank
  std::string why = {};
};

struct JobLog {
  std::string job = {};
  int ranks = 0;
  std::map<int, std::string> ends = {};  // "exited with code 0", by rank
  bool have_met = false;
  int missed = -1;          // the first one; -1: none
  std::string reason = {};  // empty: the launcher lets the ranks run
  std::string advice = {};
  std::map<int, JobFailure> failures = {};  // by rank: those that have not recovered
};

// The value of HOW for a process that ended normally.
inline constexpr std::string_view kEndedWell = "exited with code 0";

// Skips invalid lines and an incomplete last line.
JobLog parse_job_log(std::string_view text);
// Returns an empty text if the file cannot be read.
std::string read_job_log(int fd);
std::string job_line(const std::string& job, int ranks);
std::string end_line(int rank, const std::string& how);
std::string met_line();
std::string missed_line(int rank);
std::string reason_lines(const std::string& reason, const std::string& advice);
// Uses the first line of `why`.
std::string failed_line(int rank, int culprit, std::string_view why);
std::string recovered_line(int rank);

// The job log as a rank uses it.
class SharedJobLog {
 public:
  // Reads the environment, so no other thread may change the environment meanwhile.
  SharedJobLog();
  // Returns an empty log if there is no such launcher. Any thread.
  JobLog read() const;
  void add(const std::string& line) const;
  // Returns the number that the launcher gave this process; -1 if there is none.
  int process() const { return process_; }

 private:
  std::string path_;
  int process_ = -1;
};

// Reports the failure of this rank's world to the launcher, because the program may not report it.
// Used only for worlds of the launcher's own job.
class FailureReport {
 public:
  // `job` is the name of the first world, before any rank was lost. Reads the environment.
  explicit FailureReport(std::string job) : job_(std::move(job)) {}
  // Reports a failure; later ones are ignored. `culprit` as in JobFailure. Any thread.
  void tell(int culprit, std::string_view why) noexcept;
  // Reports that this rank has a world again, if it had lost one.
  void tell_recovery() const;

 private:
  bool is_ours(const JobLog& log) const;

  SharedJobLog log_;
  std::string job_;
  std::atomic_flag told_;
};

}  // namespace unisono::comm
