#include "step/training_inner.h"

#include <utility>

namespace unisono::step {

GatedPart::GatedPart(TrainingParts& parts, int layer, Names names, Dims dims)
    : LayerPart(parts, layer), names_(std::move(names)), dims_(std::move(dims)) {}

std::vector<std::string> GatedPart::matrices() const {
  return p_.shape.gated ? std::vector<std::string>{"up", "gate"} : std::vector<std::string>{"up"};
}

std::vector<std::string> GatedPart::with(const std::string& last) const {
  std::vector<std::string> all = dims_.rows;
  all.push_back(last);
  return all;
}

void GatedPart::forward() {
  const std::vector<std::string> inner = with(dims_.hidden);
  std::vector<std::string> reads;
  for (const std::string& matrix : matrices()) {
    reads.push_back(own(matrix + " out"));
    p_.product(names_.kind + matrix, name(names_.in), own(matrix), reads.back(), inner);
  }
  p_.activation(own("active"), inner);
  build_.pointwise(names_.kind + "activation", reads, own("active"), inner);
  p_.product(names_.kind + "down", own("active"), own("down"), name(names_.out), with("width"));
}

std::vector<std::string> GatedPart::backward(const std::string& dout) {
  dout_ = dout;
  const std::vector<std::string> inner = with(dims_.hidden);
  const std::string dactive = name("d " + names_.kind + "active");
  p_.product("d " + names_.kind + "active", dout_, own("down"), dactive, inner);
  std::vector<std::string> reads = {dactive};
  for (const std::string& matrix : matrices()) {
    reads.push_back(own(matrix + " out"));
  }
  std::vector<std::string> parts;
  for (const std::string& matrix : matrices()) {
    const std::string gradient = name("d " + names_.kind + matrix + " out");
    p_.activation(gradient, inner);
    build_.pointwise(names_.kind + "activation backward", reads, gradient, inner);
    parts.push_back(name("d " + names_.in + " by " + names_.kind + matrix));
    p_.product("d " + names_.in, gradient, own(matrix), parts.back(), with("width"));
  }
  return parts;
}

void GatedPart::weight_gradients() {
  const auto add = [&](const std::string& matrix, const std::string& x, const std::string& dy) {
    p_.weight_gradient(own(matrix), x, dy, "d " + own(matrix), dims_.rows);
  };
  add("down", own("active"), dout_);
  for (const std::string& matrix : matrices()) {
    add(matrix, name(names_.in), name("d " + names_.kind + matrix + " out"));
  }
}

InnerHalf::InnerHalf(TrainingParts& parts, int layer)
    : LayerPart(parts, layer),
      dense_(parts, layer, {.in = "inner in", .out = "z"}, {.hidden = "hidden"}),
      experts_(parts, layer),
      is_dense_(!parts.is_expert_layer(layer)),
      out_("layer " + std::to_string(layer + 1) + " x") {}

void InnerHalf::forward() {
  p_.activation(name("inner in"), kLayerRows);
  p_.by_rows("inner norm", {name("middle"), name("inner norm")}, name("inner in"), kLayerRows);
  p_.enter(name("inner in"));
  is_dense_ ? dense_.forward() : experts_.forward();
  p_.leave(name("z"));
  p_.activation(out_, kLayerRows);
  p_.sum("inner added", {name("middle"), name("z")}, out_);
}

void InnerHalf::backward() {
  const std::string dz = p_.leave_backward("d " + out_);  // of all rows
  const std::string dx =
      added(is_dense_ ? dense_.backward(dz) : experts_.backward(dz), name("d inner in"));
  norm_backward("inner norm", name("middle"), p_.enter_backward(dx), "d " + out_,
                "d " + name("middle"));
}

void InnerHalf::weight_gradients() {
  is_dense_ ? dense_.weight_gradients() : experts_.weight_gradients();
}

}  // namespace unisono::step
