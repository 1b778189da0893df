// Finds out that a rank which a meeting waits for has ended, and will never join: `unisono run`
// says so in its log. Under other launchers nothing is known.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bootstrap/job_log.h"

namespace unisono::comm {

struct Absence {
  int rank = -1;                // -1: nobody is known to be absent
  std::vector<int> ranks = {};  // those who are waited for and have ended
  std::string message = {};
};

// Says in the log that the ranks of this job have met, if no other rank has: between hosts each has
// a log of its own.
void note_meeting(const std::string& job, int size);

class AbsenceCheck {
 public:
  // A meeting under another name, of another size, or behind one in which all have met, has ranks
  // of its own.
  AbsenceCheck(const std::string& job, int size);
  // There is a log; find() must be called about ten times a second.
  bool has_log() const { return has_log_; }
  // Looks at most ten times a second. The launcher is told of what is found, so that it blames the
  // rank that did not come.
  Absence find(const std::function<bool(int rank)>& is_missing);

 private:
  SharedJobLog log_;
  bool has_log_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace unisono::comm
