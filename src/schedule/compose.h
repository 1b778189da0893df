// Larger schedules from smaller ones: `sub` puts a schedule on some ranks and chunks of a larger
// one, `beside` runs two at once, `then` one after the other. Hierarchical all_reduce:
//
//   then(then(reduce_scatter in every node, all_reduce across the nodes), all_gather in every node)
//
// Parts are not right on their own; the whole is verified like any schedule.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace unisono {

// The larger schedule, and the place of a smaller one in it.
struct Placement {
  Collective collective = Collective::barrier;
  int ranks = 1;
  int root = 0;
  int chunks = 1;

  std::vector<int> members = {};  // rank i of the smaller one is members[i]
  // Chunk c of the smaller one is chunks [first_chunk + c*stride, first_chunk + c*stride + width).
  int first_chunk = 0;
  int width = 1;
  int stride = 1;
  // Nothing comes before it: its inputs are the inputs of the larger one. Else they are what the
  // parts before left on its members: in the output where the rank has one, in scratch elsewhere.
  bool begins = false;
};

// The smaller schedule must be right in place unless it begins, since its outputs take the places
// of its inputs. Sums that it makes in scratch start with a copy, as scratch may be in use.
// Throws Error(usage) if members or chunks do not fit.
Schedule sub(const Schedule& schedule, const Placement& placement);

// Both in the same steps, or b after a. Throws Error(usage) if their shapes differ.
Schedule beside(const Schedule& a, const Schedule& b);
Schedule then(const Schedule& a, const Schedule& b);

}  // namespace unisono
