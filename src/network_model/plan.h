// Compares all algorithms that can serve a call on a one-port network, and explains the choice.
#pragma once

#include <string>
#include <vector>

#include "algorithms/catalog.h"
#include "cost/bounds.h"
#include "cost/cost.h"

namespace unisono::network_model {

struct Call {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  double bytes = 0;  // of the vector, as in cost.h; 0 in a barrier
};

struct Candidate {
  const Algorithm* algorithm = nullptr;  // nullptr: a user schedule
  Shape shape;          // with the parameters, such as segments, that are fastest for these bytes
  std::string name;     // with the parameters that differ from the algorithm's defaults
  cost::Cost cost;      // of the critical path
  cost::Traffic moved;  // all zero above kMostBuiltRanks, except the steps
  double time_s = 0;
  bool is_asked = false;
};

// An algorithm or a user schedule requested by name, fast or slow.
struct Asked {
  const Algorithm* algorithm = nullptr;
  // The fixed parameters; if empty, the fastest ones are used.
  AlgorithmParameters parameters = {};
  const Schedule* own = nullptr;  // REQUIRES: verified, for the collective and ranks of the call
  std::string name = {};
};

// The sizes for which `algorithm` is fastest: from `from_bytes` up to the next range.
struct SizeRange {
  const Algorithm* algorithm = nullptr;
  double from_bytes = 0;
};

struct Plan {
  Call call;
  cost::Parameters parameters;
  cost::Bound bound;
  std::vector<Candidate> candidates = {};     // fastest first; ties in catalogue order
  std::vector<const Algorithm*> unable = {};  // cannot serve this many ranks
  std::vector<SizeRange> ranges = {};         // by size, for these ranks and parameters
};

// Up to this rank count, schedules are built to count their messages; above it, closed formulas are
// used.
inline constexpr int kMostBuiltRanks = 512;
// The end of the last range.
inline constexpr double kMostRangeBytes = 17179869184.0;

// Includes `asked` among the candidates if its algorithm supports the call; the ranges only cover
// the catalogue. Cost: up to kMostBuiltRanks it builds every schedule of the collective once.
Plan make_plan(const Call& call, const cost::Parameters& parameters, const Asked* asked = nullptr);

// Explains why the first candidate is faster than the second, in numbers: "same bytes on the
// critical path as ring, 6 messages in a row instead of 14". Both must come from one plan.
std::string reason(const Candidate& first, const Candidate& second);

}  // namespace unisono::network_model
