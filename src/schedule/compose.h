// Makes larger schedules from smaller ones: `sub` puts a schedule on some ranks and chunks of a
// larger one, `beside` runs two schedules at the same time, and `then` runs two schedules one after
// the other. For example, a hierarchical all_reduce is
//
//  then(then(reduce_scatter in every node, all_reduce across the nodes), all_gather in every node)
//
// The parts need not be correct on their own; the whole is verified like any schedule.
#pragma once

#include <vector>

#include "schedule/schedule.h"

namespace unisono {

// The larger schedule, and the place of the smaller schedule in it.
struct Placement {
  Collective collective = Collective::barrier;
  int ranks = 1;
  int root = 0;
  int chunks = 1;

  std::vector<int> members = {};  // rank i of the smaller one is members[i]
  // Chunk c of the smaller schedule is chunks [first_chunk + c*stride, first_chunk + c*stride +
  // width).
  int first_chunk = 0;
  int width = 1;
  int stride = 1;
  // true: no part comes before this one, so its inputs are the inputs of the larger schedule.
  // false: its inputs are the results of earlier parts on its members; such a result is in the
  // rank's output if the rank has this output, otherwise in scratch.
  bool begins = false;
};

// Unless it begins, the smaller schedule must be correct in place, because its outputs take the
// places of its inputs. A sum that it makes in scratch starts with a copy, because scratch may be
// in use. Throws Error(usage) if members or chunks do not fit.
Schedule sub(const Schedule& schedule, const Placement& placement);

// Returns both schedules in the same steps, or b after a. Throws Error(usage) if their shapes
// differ.
Schedule beside(const Schedule& a, const Schedule& b);
Schedule then(const Schedule& a, const Schedule& b);

}  // namespace unisono
