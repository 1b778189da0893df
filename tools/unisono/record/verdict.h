// Judges a job by the calls of its ranks: why it hangs, or what costs it most.
//
// First come jobs that hang. Each rank waits in the calls that its device has begun, or else in its
// first one that has not ended; it waits for the members that are in none of these. The rank at the
// end of such a chain, which waits for nobody, is the cause. Where all wait, the order of the
// groups is compared with that of other ranks at the same place: one rank that deviates is the
// cause, else it is a deadlock.
//
// Then come jobs that are slow. The time of an operation is that of the rank that began it last,
// which waits for nobody; what the others take longer they wait. A rank's own time is what is left
// of its recording without its calls.
#pragma once

#include <vector>

#include "record/job_calls.h"
#include "top/why.h"

namespace unisono::cli {

// The cause first; empty: all that was begun has ended, and nothing costs as much as kWorthSaying.
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
