// Builds the queries, keys and values of a layer from the rows that enter attention.
#include "step/training_layer.h"

namespace unisono::step {
namespace {

using Names = Forward::Names;

const Names kRows = {"sequences", "places"};
const Names kHeads = {"sequences", "places", "kv_heads"};

Names with(Names dims, const std::string& last) {
  dims.push_back(last);
  return dims;
}

// Adds the product that compresses rows, followed by a norm.
std::string compress(Forward& f, const std::string& what, const std::string& dim) {
  const std::string low = "low " + what;
  f.product(what + " compressed", "attention in", what + " down", low, with(kRows, dim));
  f.norm(what + " norm", low, what + " norm", low + " normal");
  f.enter(low + " normal");
  return low + " normal";
}

}  // namespace

void plain_heads(Forward& f) {
  f.enter("attention in");
  f.product("query", "attention in", "query", "q", kQueries);
  f.product("key", "attention in", "key", "k", kKeys);
  f.product("value", "attention in", "value", "v", kKeys);
}

void latent_heads(Forward& f) {
  std::string query_in = "attention in of all rows";
  if (f.parts().shape.latent.query_rank > 0) {
    query_in = compress(f, "query", "query_latent");
  } else {
    f.enter("attention in", query_in);
  }
  const std::string latent = compress(f, "latent", "latent");
  f.product("rotary key", "attention in", "rotary down", "rotary k", with(kRows, "rotary"));
  f.enter("rotary k");
  f.product("query", query_in, "query", "q", kQueries);
  f.product("keys made", latent, "key up", "plain k", with(kHeads, "plain"));
  f.product("values made", latent, "value up", "v", with(kHeads, "value_dim"));
  f.pointwise("keys joined", {"plain k", "rotary k"}, "k", kKeys, kHeads, Node::Linear::together);
}

}  // namespace unisono::step
