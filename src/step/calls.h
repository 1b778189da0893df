// The calls of each rank in a step: group collectives, sends and receives, in the rank's order.
// With a pipeline, this is the order of its actions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "step/step.h"

namespace unisono::step {

struct Call {
  // all_reduce, all_gather, reduce_scatter, all_to_all, broadcast: collectives of `group`.
  // send, receive: with `peer` in `group`. dispatch, combine: rows of experts, which go where the
  // router says: `bytes` where it says so evenly. computing: no call.
  std::string what = {};
  std::vector<int> group = {};  // ranks of the mesh, in the order of the axis
  int peer = -1;
  double bytes = 0;  // the larger of what the rank gives and gets
  std::string section = {};
  std::string node = {};
  std::size_t section_index = 0;  // in the step
  std::size_t node_index = 0;     // in its section
  int layer = -1;
  std::optional<pipeline::Action> action = {};  // of the pipeline; none: outside of its passes
  double flops = 0;                             // of computing
  double memory_bytes = 0;                      // that computing reads and writes
};

// By rank. REQUIRES: verify() finds nothing.
std::vector<std::vector<Call>> calls_of(const Step& step);

}  // namespace unisono::step
