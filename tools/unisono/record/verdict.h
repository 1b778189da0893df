// Judges a job by the calls of its ranks: why it hangs, or what costs it most.
//
// First come jobs that hang. A rank waits in the calls that its device has begun; if there are
// none, it waits in its first call that has not ended. It waits for the members that are not in
// these calls. A chain of waits ends at a rank that waits for nobody: this rank is the cause. If
// all ranks wait, the order of the groups is compared with the order on other ranks at the same
// place. If one rank deviates, this rank is the cause; otherwise it is a deadlock.
//
// Then come jobs that are slow. The time of an operation is its time on the rank that began it
// last, because this rank waits for nobody. If another rank takes longer, it waits for the rest. A
// rank's own time is the time of its recording outside its calls.
#pragma once

#include <vector>

#include "record/job_calls.h"
#include "top/why.h"

namespace unisono::cli {

// Returns the cause first. Empty if all calls that were begun have ended, and nothing costs as much
// as kWorthSaying. Kinds of findings:
//
//   hangs     gone, never called, other call, other sizes, other order, deadlock, not ended
//   is slow   slow compute, slow host, slow link, moving straggler, small calls, unbalanced experts
std::vector<Finding> verdict_of(const JobCalls& job);

// The two parts of verdict_of().
std::vector<Finding> why_stuck(const JobCalls& job, const std::vector<JobMeeting>& meetings);
std::vector<Finding> why_slow(const JobCalls& job, const std::vector<JobMeeting>& meetings);

// As a share of the recorded time.
inline constexpr double kWorthSaying = 0.05;

// "2026-11-29 14:12:01 UTC", or "3.2 s after its beginning": times of a recording begin at 0.
Text moment_text(double us);
// "2.1 s"
std::string duration_text(double us);
// "from /job/train.py:120", or "(layer 3)"; empty: unknown.
std::string place_text(const JobCalls& job, const JobCall& call);

}  // namespace unisono::cli
