// Simulates requests that arrive at random at devices with continuous batching.
#pragma once

#include <vector>

namespace unisono::planner {

// Devices that answer requests of equal length together. Prompts are read one at a time and before
// anything else; answers wait during that time.
struct RequestServer {
  double prompt_s = 0;              // to read one prompt; 0: no prompts are read here
  double first_extra_s = 0;         // further time to the first token, which delays no other
                                    // request
  double steps = 0;                 // per answer, after its first token; 0: the answer ends with
                                    // that token
  double tokens = 0;                // per answer, after its first token
  int at_once = 1;                  // limit of concurrent answers; further requests wait
  std::vector<double> step_s = {};  // time of a step with 1, 2, 4, ... answers, up to at_once or
                                    // more

  // Returns the time of a step with this many answers, interpolated linearly between the two
  // neighbouring counts.
  double step_of(int answers) const;
  // Returns the requests per second that it can serve indefinitely.
  double most_per_s() const;
};

struct Quantiles {
  double half = 0;         // the median
  double nine_of_ten = 0;  // 90 %
  double most = 0;         // 99 %
};

struct Waits {
  Quantiles first_token_s = {};
  Quantiles token_s = {};  // per request, the mean time between two tokens
  double at_once = 0;      // mean number of concurrent answers
};

// Simulates Poisson arrivals, the same ones in each call: at least 8,000 requests, after a warm-up
// in which the start is forgotten.
// REQUIRES: 0 < per_s < most_per_s()
Waits play_arrivals(const RequestServer& server, double per_s);

}  // namespace unisono::planner
