// The parts of a model in training: an embedding turns tokens into vectors, layers of attention and
// an inner part transform them, and a head computes the loss. Each part adds its forward pass to
// the step and returns it, so that its backward pass can be derived.
#pragma once

#include "step/forward.h"
#include "step/transpose.h"

namespace unisono::step {

Forward embed(TrainingParts& parts);
Forward forward_layer(TrainingParts& parts, int layer);
// Adds the nodes from the last layer's output to the loss, and back to the output's gradient.
void run_head(TrainingParts& parts);

// Adds the backward pass of the embedding or a layer, from the gradient of its result.
Backward backward_of(const Forward& part);

// The common state of the parts of a layer.
inline const Forward::Names kLayerRows = {"sequences", "places", "width"};
inline const Forward::Names kQueries = {"sequences", "places", "heads", "dim"};
inline const Forward::Names kKeys = {"sequences", "places", "kv_heads", "dim"};

// Adds the nodes from "attention in" to "q", "k" and "v".
void plain_heads(Forward& layer);
// Like plain_heads(), for compressed keys and values (DeepSeek-V2, 2024): the short rows enter and
// leave the region that tp divides, where they are expanded; they are compressed before it.
void latent_heads(Forward& layer);
// Adds the nodes from "q", "k" and "v" to "attended", with the layer's kind of attention.
void attend(Forward& layer, int number);

// The product up, optionally gate, an activation, and the product down, from `in` to `out`. `kind`
// precedes the names of all tensors of this part.
struct Gated {
  std::string kind = {};
  std::string in = {};
  std::string out = {};
  Forward::Names rows = {"sequences", "places"};
  std::string hidden = {};
};
void gated_part(Forward& layer, const Gated& part);
// Adds the nodes from "inner in" to "z". Rows are sent to the ranks of the experts that the router
// chose; the results, weighted by their scores, are sent back and summed (Shazeer et al., 2017;
// Lepikhin et al., 2020). Scores exist only for the chosen experts, and no row is dropped.
void experts_part(Forward& layer);

}  // namespace unisono::step
