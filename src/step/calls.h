// Lists the calls of each rank in a step: group collectives, sends and receives, in the rank's
// order. With a pipeline, this is the order of its actions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "step/step.h"

namespace unisono::step {

struct Call {
  // all_reduce, all_gather, reduce_scatter, all_to_all, broadcast: collectives of `group`.
  // send, receive: with `peer` in `group`.
  // dispatch, combine: rows that are sent to experts and back. The router chooses the experts;
  //   `bytes` assumes that it spreads the tokens evenly.
  // computing: a computation between calls.
  std::string what = {};
  std::vector<int> group = {};  // ranks of the mesh, in axis order
  int peer = -1;
  double bytes = 0;  // the larger of the rank's sent and received bytes
  std::string section = {};
  std::string node = {};
  std::size_t section_index = 0;  // index in the step
  std::size_t node_index = 0;     // index in its section
  int layer = -1;
  std::optional<pipeline::Action> action = {};  // action of the pipeline; none: outside its passes
  double flops = 0;                             // of the computation
  double memory_bytes = 0;                      // read and written by the computation
};

// Returns the calls by rank. REQUIRES: verify() finds nothing.
std::vector<std::vector<Call>> calls_of(const Step& step);

}  // namespace unisono::step
