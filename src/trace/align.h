// Determines the difference of two clocks from messages between them: no message arrives before it
// is sent. Each message in one direction gives an upper bound on the difference, and each message
// in the other direction a lower bound; the fastest messages give the tightest bounds. The gap
// between the bounds is the uncertainty: half of the shortest round trip, as in a time request.
//
// The clocks may also run at different rates (up to 500 ppm, the most that an undisciplined quartz
// has). Each rate is assumed to be constant.
//
// source  Cristian, Distributed Computing 3, 1989; Duda et al., ICDCS 1987
#pragma once

#include <optional>
#include <vector>

namespace unisono::trace {

// At `time` of clock A, B - A is at most (or at least) `bound`. All values are in nanoseconds.
struct ClockBound {
  double time = 0;
  double bound = 0;
};

// B - A = offset + drift * (time of A).
struct ClockLine {
  double offset = 0;
  double drift = 0;
  double uncertainty = 0;  // the greatest distance from the true difference at any time of the
                           // bounds
  double at(double time) const { return offset + drift * time; }
};

// Returns nullopt if one direction has no messages, or if the bounds contradict each other.
std::optional<ClockLine> align_clocks(const std::vector<ClockBound>& at_most,
                                      const std::vector<ClockBound>& at_least);

}  // namespace unisono::trace
