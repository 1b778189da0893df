// The inference step of a decoder: a prompt of many tokens, or one more token.
//
//   tp   heads, the inner width and the vocabulary are sharded: two all_reduces per layer (Shoeybi
//        et al., 2019)
//   pp   each stage has some layers, and sends activations to the next stage
//   cp   tokens and the cache are sharded over the sequence: a ring of keys and values for a
//        prompt, a merge of attention results for one token
//   ep   the experts are distributed over the ranks; tokens are sent to their experts, and back
#pragma once

#include <string_view>

#include "planner/shape.h"
#include "step/decoder_task.h"
#include "step/step.h"

namespace unisono::step {

// Errors: config for a mesh with other axes; usage for a shape that cannot be divided among the
// ranks.
Step make_decoder_step(const planner::ModelShape& shape, std::string_view mesh,
                       const DecoderTask& task);

}  // namespace unisono::step
