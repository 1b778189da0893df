// Detects that a rank which others wait for has ended and will never join. `unisono run` reports
// this in its log; other launchers report nothing.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bootstrap/job_log.h"

namespace unisono::comm {

struct Absence {
  int rank = -1;                // -1: no rank is known to be absent
  std::vector<int> ranks = {};  // the missing ranks that have ended
  std::string message = {};
};

// Notes in the log that the ranks of this job have connected, unless another rank has done so. With
// several hosts, each host has its own log.
void note_meeting(const std::string& job, int size);

class AbsenceCheck {
 public:
  // Ignores the log if the meeting has another name or size, or comes after one in which all ranks
  // have connected: its ranks are then not those of the log.
  AbsenceCheck(const std::string& job, int size);
  // Returns true if there is a log; then call find() about ten times a second.
  bool has_log() const { return has_log_; }
  // Looks at most ten times a second. Reports an absence to the launcher, so that it blames the
  // rank that did not come.
  Absence find(const std::function<bool(int rank)>& is_missing);

 private:
  SharedJobLog log_;
  bool has_log_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace unisono::comm
