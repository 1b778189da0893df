// The catalogue: every algorithm, listed by hand, with its claims as code.
#pragma once

#include <span>
#include <string_view>

#include "schedule/schedule.h"
#include "schedule/verify.h"

namespace unisono {

struct Shape {
  int ranks = 1;
  int root = 0;
};

struct Algorithm {
  std::string_view name;     // "ring"
  Collective collective;     // the plain form; v-forms use it where allows_v
  std::string_view summary;  // one line for `unisono list`
  std::string_view source;   // paper, year
  Schedule (*build)(Shape shape);
  int (*steps)(int ranks);        // claim
  int (*chunks_sent)(int ranks);  // claim: the most any rank sends to others, in chunks
  bool (*edge)(Shape shape, int from, int to);  // claim: may `from` send to `to`?
  bool allows_v = false;
  // nullptr: any number of ranks. Otherwise says whether n can be served.
  bool (*supports)(int ranks) = nullptr;
  std::string_view limits = {};  // prose for `unisono list`: "n a power of two"
  bool in_place = true;          // claim: right when input and output are the same memory
};

std::span<const Algorithm* const> catalog();
// nullptr if there is none. `collective` may be a v-form.
const Algorithm* find_algorithm(Collective collective, std::string_view name);

// Builds with `algorithm` set to its name. REQUIRES: supports(ranks).
Schedule build_schedule(const Algorithm& algorithm, Shape shape);
// The algorithm's own claims, checked against a schedule: steps, edges, chunks sent.
std::vector<Finding> verify_claims(const Algorithm& algorithm, const Schedule& schedule);

}  // namespace unisono
