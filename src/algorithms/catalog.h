// The catalogue: every algorithm, listed by hand, with its claims as code.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "algorithms/parameters.h"
#include "schedule/compact.h"
#include "schedule/finding.h"
#include "schedule/schedule.h"

namespace unisono {

struct Shape {
  int ranks = 1;
  int root = 0;
  AlgorithmParameters parameters = {};
};

// The terms of the closed cost formulas.
struct CostTerms {
  double alpha = 0;  // per message
  double beta = 0;   // to send the whole vector
  double gamma = 0;  // to reduce the whole vector
};

struct Algorithm {
  std::string_view name;     // "ring"
  Collective collective;     // the plain form; v-forms use it where allows_v
  std::string_view summary;  // one line for `unisono list`
  std::string_view source;   // paper, year
  // Each of these functions gets a shape whose parameters are set.
  Schedule (*build)(Shape shape);
  int (*steps)(Shape shape);        // claim
  int (*chunks_sent)(Shape shape);  // claim: the most any rank sends to others, in chunks
  // claim: the time on a one-port network (cost/cost.h), in closed form
  double (*cost)(Shape shape, const CostTerms& t);
  bool (*edge)(Shape shape, int from, int to);  // claim: may `from` send to `to`?
  bool allows_v = false;
  // Returns true if the algorithm can serve the shape; nullptr: it serves every shape.
  bool (*supports)(Shape shape) = nullptr;
  std::string_view limits = {};  // prose for `unisono list`: "n a power of two"
  bool in_place = true;          // claim: right when input and output are the same memory
  // claim: sums in rank order (schedule/rank_order.h), for every shape
  bool rank_order = false;
  // claim, if set: returns true if the move's chunks may go this way
  bool (*route)(Shape shape, const Move& move) = nullptr;
  // claim, if set: the number of chunks that all ranks together send to other ranks
  int (*total_sent)(Shape shape) = nullptr;
  // claim, if set: the most chunks that any rank holds in scratch after a step, to read them later
  int (*scratch_chunks)(Shape shape) = nullptr;
  // The defaults of the parameters that the algorithm takes; other parameters stay unset. nullptr:
  // it takes none.
  AlgorithmParameters (*defaults)(int ranks) = nullptr;
  // claim, if set: the same messages in compact form, for the simulator
  CompactSchedule (*compact)(Shape shape) = nullptr;
};

std::span<const Algorithm* const> catalog();
// Returns nullptr if there is none. `collective` may be a v-form. Ignores parameters in the name,
// which parse_parameters() reads.
const Algorithm* find_algorithm(Collective collective, std::string_view name);

// Returns the parameters in a name such as "knomial:radix=4". Throws Error(usage) if they are
// malformed, or if the algorithm does not take them.
AlgorithmParameters parse_parameters(const Algorithm& algorithm, std::string_view name);
// Returns a name such as "knomial:radix=8": the algorithm, and the parameters that differ from its
// defaults. Two shapes have the same schedule if their full names are equal.
std::string full_name(const Algorithm& algorithm, Shape shape);
// Returns the shape with all parameters that the algorithm takes.
Shape complete(const Algorithm& algorithm, Shape shape);
// Returns the shape for which a schedule of the algorithm was built. Throws Error(usage) if the
// schedule's name is not a name of the algorithm.
Shape shape_of(const Algorithm& algorithm, const Schedule& schedule);
bool can_serve(const Algorithm& algorithm, Shape shape);

// Builds a schedule whose `algorithm` is the full name. REQUIRES: can_serve().
Schedule build_schedule(const Algorithm& algorithm, Shape shape);
// Checks the algorithm's own claims against a schedule: steps, edges, chunks sent, scratch.
std::vector<Finding> verify_claims(const Algorithm& algorithm, const Schedule& schedule);

}  // namespace unisono
