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
  double bytes = 0;  // of the vector, as in cost.h; a barrier has none
};

struct Candidate {
  const Algorithm* algorithm = nullptr;  // nullptr: a schedule of the user's own
  Shape shape;          // with the parameters, such as segments, that are fastest for these bytes
  std::string name;     // with those that are not the algorithm's defaults
  cost::Cost cost;      // the critical path
  cost::Traffic moved;  // but for the steps all zero above kMostBuiltRanks
  double time_s = 0;
  bool is_asked = false;
};

// An algorithm or a user's schedule that is asked for by name, fast or not.
struct Asked {
  const Algorithm* algorithm = nullptr;
  // The fixed parameters; without any, the fastest ones are taken.
  AlgorithmParameters parameters = {};
  const Schedule* own = nullptr;  // REQUIRES: verified, for the collective and ranks of the call
  std::string name = {};
};

// The sizes for which `algorithm` is fastest: from `from_bytes` on, up to the next range.
struct SizeRange {
  const Algorithm* algorithm = nullptr;
  double from_bytes = 0;
};

struct Plan {
  Call call;
  cost::Parameters parameters;
  cost::Bound bound;
  std::vector<Candidate> candidates = {};     // fastest first; equals in the order of the catalogue
  std::vector<const Algorithm*> unable = {};  // cannot serve so many ranks
  std::vector<SizeRange> ranges = {};         // by size, for these ranks and parameters
};

// Up to this rank count, schedules are built to count their messages; above it, closed formulas are
// used.
inline constexpr int kMostBuiltRanks = 512;
// Ranges end here.
inline constexpr double kMostRangeBytes = 17179869184.0;

// `asked` is among the candidates if the algorithm supports the call; the ranges are those of the
// catalogue. Cost: up to kMostBuiltRanks it builds every schedule of the collective once.
Plan make_plan(const Call& call, const cost::Parameters& parameters, const Asked* asked = nullptr);

// Why the first is before the second, in numbers: "same bytes on the critical path as ring, 6
// messages in a row instead of 14". Both are of one plan.
std::string reason(const Candidate& first, const Candidate& second);

}  // namespace unisono::network_model
