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

// The terms of the closed formulas.
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
  // All of them are handed a shape whose parameters are set.
  Schedule (*build)(Shape shape);
  int (*steps)(Shape shape);        // claim
  int (*chunks_sent)(Shape shape);  // claim: the most any rank sends to others, in chunks
  // claim: the time on a one-port network (cost/cost.h), in closed form
  double (*cost)(Shape shape, const CostTerms& t);
  bool (*edge)(Shape shape, int from, int to);  // claim: may `from` send to `to`?
  bool allows_v = false;
  // nullptr: any shape. Otherwise says whether it can be served.
  bool (*supports)(Shape shape) = nullptr;
  std::string_view limits = {};  // prose for `unisono list`: "n a power of two"
  bool in_place = true;          // claim: right when input and output are the same memory
  // claim: sums in the order of the ranks (schedule/rank_order.h), whatever the shape
  bool rank_order = false;
  // claim, where there is one: may these chunks go this way?
  bool (*route)(Shape shape, const Move& move) = nullptr;
  // claim, where there is one: chunks that all ranks together send to others
  int (*total_sent)(Shape shape) = nullptr;
  // claim, where there is one: the most chunks that any rank has in scratch after a step to read
  // them later
  int (*scratch_chunks)(Shape shape) = nullptr;
  // The parameters that it takes are those that are set here, by their defaults; nullptr: none.
  AlgorithmParameters (*defaults)(int ranks) = nullptr;
  // claim, where there is one: the same messages in short, for the simulator
  CompactSchedule (*compact)(Shape shape) = nullptr;
};

std::span<const Algorithm* const> catalog();
// nullptr if there is none. `collective` may be a v-form. Parameters in the name are passed over:
// parse_parameters reads them.
const Algorithm* find_algorithm(Collective collective, std::string_view name);

// The parameters in "knomial:radix=4". Throws Error(usage) if they are malformed or not those of
// the algorithm.
AlgorithmParameters parse_parameters(const Algorithm& algorithm, std::string_view name);
// "knomial:radix=8": the algorithm and those parameters that differ from its defaults. Two shapes
// have the same schedule where their names are the same.
std::string full_name(const Algorithm& algorithm, Shape shape);
// The shape with all parameters set that the algorithm takes.
Shape complete(const Algorithm& algorithm, Shape shape);
// The shape that a schedule of the algorithm was built for. Throws Error(usage) if its name is no
// name of the algorithm.
Shape shape_of(const Algorithm& algorithm, const Schedule& schedule);
bool can_serve(const Algorithm& algorithm, Shape shape);

// Builds with `algorithm` set to its full name. REQUIRES: can_serve.
Schedule build_schedule(const Algorithm& algorithm, Shape shape);
// The algorithm's own claims, checked against a schedule: steps, edges, chunks sent,
// scratch.
std::vector<Finding> verify_claims(const Algorithm& algorithm, const Schedule& schedule);

}  // namespace unisono
