// The mistakes of a step, as data and as sentences.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pipeline/findings.h"
#include "step/step.h"

namespace unisono::step {

struct Finding {
  enum class Kind : std::uint8_t {
    not_there,     // the stage has no such tensor yet
    unsummed,      // a Partial is read as if it were whole
    summed_twice,  // a sum of summands and of what is whole, which would count once for each rank
    product_of_sums,
    two_cuts,  // parts of two dimensions, of which one is whole
    whole_beside_part,
    needs_whole,     // the computation wants all of a dimension
    not_as_said,     // a redistribution from what is not there
    no_conversion,   // such as Replicate to Partial
    lost_dimension,  // the result has no such dimension to be cut
    never_home,      // a ring_with that no ring_home follows
    never_out,       // a ring_home behind no ring_with like it
    stages_differ,   // a sum of stages whose summands lie differently
    order,           // ranks do the passes of a pipeline in an order that cannot be
    unread,          // nothing reads it before it is written anew, or ever
    result,
    no_result,  // on one stage, or on all
    memory,
  };
  Kind kind = Kind::not_there;
  std::string section = {};
  std::string node = {};
  std::string tensor = {};
  std::string other = {};  // another tensor
  std::string axis = {};
  Placement found = {};
  Placement wanted = {};
  int stage = -1;
  int rank = -1;
  double bytes = 0;
  double most_bytes = 0;
  std::optional<pipeline::Finding> pipeline = {};  // of an order
};

// A sentence: "layers, mlp.add: y is partial over tp, and read as if it were whole".
std::string to_text(const Finding& finding);

}  // namespace unisono::step
