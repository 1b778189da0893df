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
//
// Ranks are those that the launcher gave out.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace unisono::comm {

struct JobLog {
  std::string job = {};
  int ranks = 0;
  std::map<int, std::string> ends = {};  // "exited with code 0", by rank
  bool have_met = false;
  int missed = -1;          // the first of them; -1: none
  std::string reason = {};  // empty: the launcher lets the ranks run
  std::string advice = {};
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

// The log as a rank sees it.
class SharedJobLog {
 public:
  // Reads the environment, which other threads may not while the program changes it.
  SharedJobLog();
  // Empty where there is no such launcher. Any thread.
  JobLog read() const;
  void add(const std::string& line) const;

 private:
  std::string path_;
};

}  // namespace unisono::comm
