// What `unisono run` and the ranks of its host tell each other in a file that UNISONO_LAUNCHER
// names; with --hosts each rank has one of its own, in which its shell writes who has ended.
// Everyone adds whole lines to its end:
//
//   job NAME RANKS    first, by the launcher
//   end RANK HOW      the process of that rank has ended; the launcher
//   met               all ranks have met; ranks may be others from now on; a rank
//   missed RANK       a meeting waited for that rank, which had ended; a rank
//   reason WHY        the launcher is about to end the ranks that are left
//   advice WHAT       what to do about the reason
//   failed RANK CULPRIT WHY   the world of that rank has ended with an error; CULPRIT is the rank
//   to
//                     blame, -1 if there is none; that rank
//   recovered RANK    that rank is in a new world, which goes on; that rank
//
// Ranks are those that the launcher gave out.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace unisono::comm {

// Why the world of a rank has ended.
struct JobFailure {
  int culprit = -1;  // to blame; -1: no rank in particular
  std::string why = {};
};

struct JobLog {
  std::string job = {};
  int ranks = 0;
  std::map<int, std::string> ends = {};  // "exited with code 0", by rank
  bool have_met = false;
  int missed = -1;          // the first of them; -1: none
  std::string reason = {};  // empty: the launcher lets the ranks run
  std::string advice = {};
  std::map<int, JobFailure> failures = {};  // by rank: those that have not recovered
};

// HOW of a process that ended as it wished.
inline constexpr std::string_view kEndedWell = "exited with code 0";

// Lines that make no sense, and one that is not yet whole, are passed over.
JobLog parse_job_log(std::string_view text);
// Empty if the file cannot be read.
std::string read_job_log(int fd);
std::string job_line(const std::string& job, int ranks);
std::string end_line(int rank, const std::string& how);
std::string met_line();
std::string missed_line(int rank);
std::string reason_lines(const std::string& reason, const std::string& advice);
// Takes the first line of `why`.
std::string failed_line(int rank, int culprit, std::string_view why);
std::string recovered_line(int rank);

// The log as a rank sees it.
class SharedJobLog {
 public:
  // Reads the environment, which other threads may not while the program changes it.
  SharedJobLog();
  // Empty where there is no such launcher. Any thread.
  JobLog read() const;
  void add(const std::string& line) const;
  // The number that the launcher gave this process; -1: none.
  int process() const { return process_; }

 private:
  std::string path_;
  int process_ = -1;
};

// Tells the launcher of a failure of this rank's world, which the program may not pass on to it.
// For worlds of the launcher's own job only.
class FailureReport {
 public:
  // `job`: of the first world, before any rank was lost. Reads the environment.
  explicit FailureReport(std::string job) : job_(std::move(job)) {}
  // Only the first failure counts. `culprit` as for JobFailure. Any thread.
  void tell(int culprit, std::string_view why) noexcept;
  // This rank has a world again, if it lost one.
  void tell_recovery() const;

 private:
  bool is_ours(const JobLog& log) const;

  SharedJobLog log_;
  std::string job_;
  std::atomic_flag told_;
};

}  // namespace unisono::comm
