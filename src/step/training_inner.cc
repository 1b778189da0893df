// The inner part of a layer: up, perhaps gate, an activation, and down.
#include "step/training_layer.h"

namespace unisono::step {
namespace {

using Dims = std::vector<std::string>;

const Dims kInner = {"sequences", "places", "hidden"};

}  // namespace

Dims InnerHalf::matrices() const {
  return p_.shape.gated ? Dims{"up", "gate"} : Dims{"up"};
}

void InnerHalf::forward() {
  p_.activation(name("inner in"), kLayerRows);
  p_.by_rows("inner norm", {name("middle"), name("inner norm")}, name("inner in"), kLayerRows);
  p_.enter(name("inner in"));
  Dims reads;
  for (const std::string& matrix : matrices()) {
    reads.push_back(name(matrix + " out"));
    p_.product(matrix, name("inner in"), name(matrix), reads.back(), kInner);
  }
  p_.activation(name("active"), kInner);
  build_.pointwise("activation", reads, name("active"), kInner);
  p_.product("down", name("active"), name("down"), name("z"), kLayerRows);
  p_.leave(name("z"));
  p_.activation(out_, kLayerRows);
  p_.sum("inner added", {name("middle"), name("z")}, out_);
}

void InnerHalf::backward() {
  dinner_out_ = p_.leave_backward("d " + out_);
  p_.product("d active", dinner_out_, name("down"), name("d active"), kInner);
  norm_backward("inner norm", name("middle"), p_.enter_backward(activation_backward()), "d " + out_,
                "d " + name("middle"));
}

std::string InnerHalf::activation_backward() {
  Dims reads = {name("d active")};
  for (const std::string& matrix : matrices()) {
    reads.push_back(name(matrix + " out"));
  }
  Dims parts;
  for (const std::string& matrix : matrices()) {
    p_.activation(name("d " + matrix + " out"), kInner);
    build_.pointwise("activation backward", reads, name("d " + matrix + " out"), kInner);
    parts.push_back(name("d inner in by " + matrix));
    p_.product("d inner in", name("d " + matrix + " out"), name(matrix), parts.back(), kLayerRows);
  }
  return added(parts, name("d inner in"));
}

void InnerHalf::weight_gradients() {
  p_.weight_gradient(name("down"), name("active"), dinner_out_);
  for (const std::string& matrix : matrices()) {
    p_.weight_gradient(name(matrix), name("inner in"), name("d " + matrix + " out"));
  }
}

}  // namespace unisono::step
