// Parts of a model that is trained: tokens become vectors, layers of attention and an inner part
// change them, and a head makes a loss of them. Each part adds its forward pass to the step and
// returns it, so that its backward pass can be derived.
#pragma once

#include "step/forward.h"
#include "step/transpose.h"

namespace unisono::step {

Forward embed(TrainingParts& parts);
Forward forward_layer(TrainingParts& parts, int layer);
// The nodes from the last layer's output to the loss, and back to the output's gradient.
void run_head(TrainingParts& parts);

// The backward pass of the embedding or a layer, from the gradient of what it gives.
Backward backward_of(const Forward& part);

// State that the parts of a layer share.
inline const Forward::Names kLayerRows = {"sequences", "places", "width"};
inline const Forward::Names kQueries = {"sequences", "places", "heads", "dim"};
inline const Forward::Names kKeys = {"sequences", "places", "kv_heads", "dim"};

// From "attention in" to "q", "k" and "v".
void plain_heads(Forward& layer);
// Heads of compressed keys and values (DeepSeek-V2, 2024): the short rows that they are unfolded
// from go into and out of what tp cuts, and what compresses is done before.
void latent_heads(Forward& layer);
// From these to "attended", as the number of the layer says.
void attend(Forward& layer, int number);

// Up, perhaps gate, an activation, and down, from `in` to `out`. `kind` stands before the names of
// all that is the part's own.
struct Gated {
  std::string kind = {};
  std::string in = {};
  std::string out = {};
  Forward::Names rows = {"sequences", "places"};
  std::string hidden = {};
};
void gated_part(Forward& layer, const Gated& part);
// From "inner in" to "z". Rows go to the ranks that have the experts that the router chose for
// them, and what these give, weighted by their scores, comes back and is added up (Shazeer et al.,
// 2017; Lepikhin et al., 2020). Scores are of the chosen experts alone, and no row is dropped.
void experts_part(Forward& layer);

}  // namespace unisono::step
