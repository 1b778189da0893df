// Detects that a rank has ended and will never join, although other ranks wait for it. `unisono
// run` reports such ends in its log; other launchers report nothing.
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

// Notes in the log that all ranks of this job have connected, unless another rank has noted it.
// With several hosts, each host has its own log.
void note_meeting(const std::string& job, int size);

class AbsenceCheck {
 public:
  // Ignores the log if its ranks are not the ranks of this meeting: if the meeting has another name
  // or size, or if all ranks have already connected in an earlier meeting.
  AbsenceCheck(const std::string& job, int size);
  // Returns true if there is a log. Then call find() about ten times a second.
  bool has_log() const { return has_log_; }
  // Reads the log at most ten times a second. Reports an absence to the launcher, so that the
  // launcher blames the rank that did not come.
  Absence find(const std::function<bool(int rank)>& is_missing);

 private:
  SharedJobLog log_;
  bool has_log_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace unisono::comm
