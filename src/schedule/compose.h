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
  // true: no part comes before it, so its inputs are the inputs of the larger schedule. false: its
  // inputs are the results of earlier parts on its members: in the output if the rank has one,
  // otherwise in scratch.
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
