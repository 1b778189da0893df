// A simulation of requests that arrive at random at devices that batch continuously.
#pragma once

#include <vector>

namespace unisono::planner {

// Devices that answer requests together, all of one length. Prompts are read one after the other,
// before anything else; meanwhile answers wait.
struct RequestServer {
  double prompt_s = 0;              // to read one prompt; 0: none is read here
  double first_extra_s = 0;         // the rest of the time to a first token, in which nothing waits
  double steps = 0;                 // of an answer after its first token; 0: it ends with that
  double tokens = 0;                // of an answer after its first token
  int at_once = 1;                  // answers under way, at most; further requests wait
  std::vector<double> step_s = {};  // of 1, 2, 4, ... answers under way, up to at_once or more

  // A step of `answers`, on the line between the two measured counts around it.
  double step_of(int answers) const;
  // Requests a second that it can answer for ever.
  double most_per_s() const;
};

struct Quantiles {
  double half = 0;         // the median
  double nine_of_ten = 0;  // 90 %
  double most = 0;         // 99 %
};

struct Waits {
  Quantiles first_token_s = {};
  Quantiles token_s = {};  // of each request, the mean time between two of its tokens
  double at_once = 0;      // answers under way, in the mean
};

// Plays Poisson arrivals, the same ones in each call: at least 8,000 requests, after as many as it
// takes until the beginning is forgotten.
// REQUIRES: 0 < per_s < most_per_s()
Waits play_arrivals(const RequestServer& server, double per_s);

}  // namespace unisono::planner
