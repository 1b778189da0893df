// The errors of a step, as data and as sentences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/findings.h"
#include "step/step.h"

namespace unisono::step {

struct Finding {
  enum class Kind : std::uint8_t {
    not_there,     // the tensor does not exist yet on the stage
    unsummed,      // a computation reads a Partial as if it were whole
    summed_twice,  // a sum of partial and replicated tensors, which would count once per rank
    product_of_sums,
    two_cuts,  // shards of two dimensions, which do not give a whole one
    whole_beside_part,
    needs_whole,     // the computation needs the whole dimension
    not_as_said,     // a redistribution from another placement than the tensor has
    no_conversion,   // no such conversion, as from Replicate to Partial
    lost_dimension,  // the result does not have the sharded dimension
    never_home,      // a ring_with without a ring_home after it
    never_out,       // a ring_home without a matching ring_with
    stages_differ,   // a sum of stages with different placements
    order,           // an impossible order of a pipeline's passes
    unread,          // never read before it is written again, or never read at all
    result,
    no_result,  // missing on one stage, or on all stages
    memory,
  };
  Kind kind = Kind::not_there;
  std::string section = {};
  std::string node = {};
  std::string tensor = {};
  std::string other = {};  // a second tensor
  std::string axis = {};
  Placement found = {};
  Placement wanted = {};
  int stage = -1;
  int rank = -1;
  double bytes = 0;
  double most_bytes = 0;
  std::optional<pipeline::Finding> pipeline = {};  // for `order`
};

// Returns a sentence: "layers, mlp.add: y is partial over tp, but is read as if it were whole".
std::string to_text(const Finding& finding);

}  // namespace unisono::step
