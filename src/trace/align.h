// Determines the difference of two clocks from messages between them: none arrives before it is
// sent. Each message in one direction is an upper bound of the difference, each one in the other
// direction a lower bound, and the fastest of both make it tight. The remainder is the uncertainty:
// half of the shortest round trip, as in a time request.
//
// The clocks may also run at different rates (up to 500 ppm, what an undisciplined quartz can
// have); each is taken to keep its own.
//
//   source  Cristian, Distributed Computing 3, 1989; Duda et al., ICDCS 1987
#pragma once

#include <optional>
#include <vector>

namespace unisono::trace {

// At `time` of clock A, B - A is at most, or at least, `bound`. All in nanoseconds.
struct ClockBound {
  double time = 0;
  double bound = 0;
};

// B - A = offset + drift * (time of A).
struct ClockLine {
  double offset = 0;
  double drift = 0;
  double uncertainty = 0;  // at any time of those given, the true difference is no further away
  double at(double time) const { return offset + drift * time; }
};

// nullopt: there are no messages one way, or they contradict each other.
std::optional<ClockLine> align_clocks(const std::vector<ClockBound>& at_most,
                                      const std::vector<ClockBound>& at_least);

}  // namespace unisono::trace
