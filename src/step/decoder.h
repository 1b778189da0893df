// The step of a decoder that answers: a prompt of many tokens, or one token more.
//
//   tp   heads, the inner width and the vocabulary are cut: two all_reduces a layer (Shoeybi et
//        al., 2019)
//   pp   each stage has some layers, and passes activations on
//   cp   tokens and the cache are cut over the sequence: a ring of keys and values for a prompt,
//        a merge of what attention gives for one token
//   ep   the ranks have other experts; tokens are cut, go to their experts, and come back
#pragma once

#include <string_view>

#include "planner/shape.h"
#include "step/decoder_task.h"
#include "step/step.h"

namespace unisono::step {

// Errors: config, for a mesh with other axes; usage, for a shape that the ranks cannot share.
Step make_decoder_step(const planner::ModelShape& shape, std::string_view mesh,
                       const DecoderTask& task);

}  // namespace unisono::step
